package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed equivalent.txt
var equivalent string

// readEquivalent returns the reasons for mutants without an effect, by key. Each line is the key, a
// tab, and the reason.
func readEquivalent() (map[string]string, error) {
	reasons := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(equivalent)); lines.Scan(); {
		if lines.Text() == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		key, reason, ok := strings.Cut(lines.Text(), "\t")
		if !ok || reason == "" {
			return nil, fmt.Errorf("equivalent.txt: no reason in %q", lines.Text())
		}
		reasons[key] = reason
	}
	return reasons, nil
}
