module.exports = () => {
  throw new Error('db is down');
};
