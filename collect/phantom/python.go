package phantom

import _ "embed"

//go:embed pysrc/phantom_values.py
var pythonModule []byte
