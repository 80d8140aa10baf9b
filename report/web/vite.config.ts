import { defineConfig } from 'vite'

// The build makes one script and one style sheet. Package page of report puts them into the page.
export default defineConfig({
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    outDir: 'dist',
    cssMinify: true,
    minify: 'esbuild',
    modulePreload: false,
    lib: { entry: 'src/main.tsx', formats: ['iife'], name: 'dpsight', fileName: () => 'page.js', cssFileName: 'page' },
  },
  define: { 'process.env.NODE_ENV': '"production"' },
})
