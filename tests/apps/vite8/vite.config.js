export default { base: './', build: { outDir: 'site' } };
