// What page.sh check holds the page's sources to.

import js from '@eslint/js'
import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['dist', 'node_modules'] },
  js.configs.recommended,
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // What is asserted not to be null was looked at by the caller, or a few lines above.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Control characters are looked for, to show them.
      'no-control-regex': 'off',
    },
  },
  {
    files: ['tests/*.mjs'],
    languageOptions: {
      globals: {
        process: false,
        console: false,
        Buffer: false,
        setTimeout: false,
        clearTimeout: false,
        setInterval: false,
        clearInterval: false,
        document: false,
        location: false,
        innerWidth: false,
        performance: false,
        MutationObserver: false,
        URLSearchParams: false,
        requestAnimationFrame: false,
        KeyboardEvent: false,
      },
    },
  },
)
