import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'

/** KaTeX names three formats of each font; every browser of today reads woff2. */
export function onlyWoff2(): Plugin {
  return {
    name: 'only-woff2',
    enforce: 'pre',
    transform(code, id) {
      if (!id.includes('katex') || !id.split('?')[0].endsWith('.css')) return null
      return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[a-z]+"\)/g, '')
    },
  }
}

export default defineConfig({
  plugins: [onlyWoff2(), svelte()],
  build: {
    outDir: '../src/heedful/web/built',
    emptyOutDir: true,
    assetsInlineLimit: 0, // everything is a file of this server: no data: scripts, styles or fonts
    modulePreload: { polyfill: false },
    rollupOptions: {
      // The mathematics is an entry of its own, so that the tests can load the very code that runs.
      input: { index: 'index.html', mathematics: 'src/lib/mathematics.ts' },
      preserveEntrySignatures: 'strict',
    },
  },
})
