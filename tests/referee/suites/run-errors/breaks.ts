export default (): void => {
  throw new Error('db is down');
};
