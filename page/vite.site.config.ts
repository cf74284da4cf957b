/** The page of `heed site`: one plain script, so that it also runs from a disk, and the files of onnxruntime. */
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { copyFileSync, mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { defineConfig, type Plugin } from 'vite'
import { onlyWoff2 } from './vite.config'

const outDir = resolve('../src/heedful/web/built/site')

/** The runtime of the translator is loaded when it is first needed, so it stays beside the script. */
const RUNTIME = { 'ort.wasm.min.js': 'ort.js', 'ort-wasm-simd-threaded.mjs': 'ort-loader.js', 'ort-wasm-simd-threaded.wasm': 'ort.wasm' }

function withRuntime(): Plugin {
  return {
    name: 'with-runtime',
    closeBundle() {
      mkdirSync(`${outDir}/ort`, { recursive: true })
      for (const [from, to] of Object.entries(RUNTIME)) copyFileSync(`node_modules/onnxruntime-web/dist/${from}`, `${outDir}/ort/${to}`)
    },
  }
}

export default defineConfig({
  base: './',
  publicDir: 'site',
  plugins: [onlyWoff2(), svelte(), withRuntime()],
  build: {
    outDir,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: 'src/site/main.ts',
      output: { format: 'iife', entryFileNames: 'site.js', assetFileNames: (asset) => (asset.names?.[0]?.endsWith('.css') ? 'site.css' : 'fonts/[name][extname]') },
    },
  },
})
