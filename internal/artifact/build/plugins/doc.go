// Package plugins finds, describes and checks the scheduler plugins that are compiled into a
// program, and generates the files that they add to its module.
//
// Plugins are read as source and never type-checked: everything that would fail later (a signature
// of another release, a duplicate name, a missing constant) is refused before a compiler runs.
package plugins
