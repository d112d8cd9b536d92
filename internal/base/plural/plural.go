// Package plural writes numbers with their nouns.
package plural

import (
	"strconv"
	"strings"
)

// Count returns a number with a regular noun: "1 node", "2 nodes", "0 copies".
func Count(n int, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case isY && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])):
		return Phrase(n, noun, stem+"ies")
	case strings.HasSuffix(noun, "s"):
		return Phrase(n, noun, noun+"es")
	}
	return Phrase(n, noun, noun+"s")
}

// Phrase returns a number with one of two texts: "1 pod is left", "2 pods are left".
func Phrase(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
