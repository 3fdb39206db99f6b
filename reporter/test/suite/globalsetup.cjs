const { createGlobalSetup } = require('callboard-reporter');

module.exports = createGlobalSetup({}, async () => {
  process.env.SHOP_READY = 'yes';
  return () => console.log('torn down');
});
