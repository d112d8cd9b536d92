// Package matrix tests every release in versions/releases.txt on its own kube-scheduler: with the
// build tag matrix, `make test-matrix`.
package matrix
