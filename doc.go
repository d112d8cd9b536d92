// Package pmksched holds the tests of the repository as a whole: the imports of packages, the
// promises of the README, and the words that files may not contain. The programs are in cmd/.
package pmksched
