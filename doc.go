// Package pmksched holds the tests of the repository as a whole: who may import whom, what the README
// promises, which words files may not contain. The programs are in cmd/.
package pmksched
