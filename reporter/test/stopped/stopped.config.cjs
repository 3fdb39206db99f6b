module.exports = { workers: 2, maxFailures: 1, reporter: [['dot'], ['callboard-reporter']] };
