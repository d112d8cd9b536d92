// Package pmksched holds the tests for the whole repository: package imports, the README's
// promises, and words that files may not contain. The programs are in cmd/.
package pmksched
