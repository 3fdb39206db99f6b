const { mkdirSync, writeFileSync } = require('node:fs');
const path = require('node:path');

/** Writes its report while tests run and completes it when they are done, as many do. */
module.exports = class LateReporter {
  constructor({ configDir }) {
    this.dir = path.join(configDir, 'late-report');
  }

  onTestEnd(test) {
    mkdirSync(this.dir, { recursive: true });
    writeFileSync(path.join(this.dir, 'results.txt'), test.title);
  }

  onEnd() {
    writeFileSync(path.join(this.dir, 'summary.txt'), 'complete');
  }
};
