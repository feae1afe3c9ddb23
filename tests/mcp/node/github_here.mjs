// github_here.mjs - loaded before a server: what it asks of api.github.com it asks of GITHUB_HERE, which is of the test.
const elsewhere = globalThis.fetch;

globalThis.fetch = (url, options) => elsewhere(String(url).replace('https://api.github.com', process.env.GITHUB_HERE), options);
