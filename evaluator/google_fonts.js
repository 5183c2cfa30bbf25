// Stands for Google Fonts while next builds without network (next's own NEXT_FONT_GOOGLE_MOCKED_RESPONSES names this
// file): every style sheet declares its font as one of the machine's own, so that pages fall back to the next family.
const style = (address) => {
  const families = new URL(address).searchParams.getAll('family').map((family) => family.split(':')[0]);
  return families
    .map((name) => `@font-face { font-family: '${name}'; font-style: normal; font-weight: 100 900; src: local('${name}'); }`)
    .join('\n');
};
module.exports = new Proxy({}, {
  get: (_, key) => (String(key).startsWith('https://') ? style(String(key)) : undefined),
});
