module.exports = { workers: 2, retries: 1, maxFailures: 1, reporter: [['dot'], ['callboard-reporter']] };
