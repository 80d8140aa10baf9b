// Package findings looks for noteworthy facts about a run. Each check is in its own file, with its threshold and its
// facts. Package report puts findings into words. docs/findings.md describes all findings.
package findings
