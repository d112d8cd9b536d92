package staticpod

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Replacement returns the annotation [AnnotationReplacement] of a manifest. It returns "" if the
// annotation is missing or the manifest cannot be decoded.
func Replacement(manifest []byte) string {
	var pod struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if yaml.Unmarshal(manifest, &pod) != nil {
		return ""
	}
	return pod.Metadata.Annotations[AnnotationReplacement]
}

// Managed reports whether pmk-sched changed the manifest.
func Managed(manifest []byte) bool { return Replacement(manifest) != "" }

// Diff returns the differences between a and b by line, each with three lines of context.
func Diff(a, b []byte) string {
	before, after := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	var out strings.Builder
	var trail []string // unchanged lines not yet shown
	quiet := -1        // unchanged lines since the last difference; -1: none yet
	for _, l := range lineDiff(before, after) {
		if l.mark == ' ' {
			if quiet >= 0 && quiet < contextLines {
				fmt.Fprintf(&out, "  %s\n", l.text)
				quiet++
				continue
			}
			if trail = append(trail, l.text); len(trail) > contextLines {
				trail = trail[1:]
				quiet = max(quiet, contextLines)
			}
			continue
		}
		for _, t := range trail {
			fmt.Fprintf(&out, "  %s\n", t)
		}
		trail, quiet = nil, 0
		fmt.Fprintf(&out, "%c %s\n", l.mark, l.text)
	}
	return out.String()
}

// contextLines is the number of unchanged lines before and after a difference.
const contextLines = 3

type diffLine struct {
	mark byte // ' ', '-', '+'
	text string
}

// lineDiff compares by the longest common subsequence; manifests are short.
func lineDiff(a, b []string) []diffLine {
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var lines []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, diffLine{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			lines = append(lines, diffLine{'-', a[i]})
			i++
		default:
			lines = append(lines, diffLine{'+', b[j]})
			j++
		}
	}
	return lines
}
