/** The widgets of notebooks: one ES module with its styles inside, since a notebook loads nothing beside it. */
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

export default defineConfig({
  // Styles of a component go to where it is mounted: a shadow root, so that they leave the notebook alone.
  plugins: [svelte({ compilerOptions: { css: 'injected' } })],
  build: {
    outDir: '../src/heedful/web/built/widgets',
    emptyOutDir: true,
    lib: { entry: 'src/widgets/widgets.svelte.ts', formats: ['es'], fileName: () => 'widgets.js' },
  },
})
