import tseslint from 'typescript-eslint'

export default tseslint.config({ ignores: ['dist', 'node_modules'] }, ...tseslint.configs.strictTypeChecked, {
  languageOptions: { parserOptions: { project: ['./tsconfig.json'], tsconfigRootDir: import.meta.dirname } },
  rules: {
    '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    '@typescript-eslint/no-non-null-assertion': 'off',
    '@typescript-eslint/no-confusing-void-expression': 'off',
      // What an index gives is there by its type, and need not be.
      '@typescript-eslint/no-unnecessary-condition': 'off',
    // Names come from tables: HTML must never be made of them.
    'no-restricted-properties': ['error', { property: 'innerHTML' }, { property: 'outerHTML' }],
    'no-restricted-syntax': ['error', 'JSXAttribute[name.name="dangerouslySetInnerHTML"]'],
  },
})
