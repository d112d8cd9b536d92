package gputable

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// PageFile returns the path of the page with the tables.
func PageFile() string {
	return filepath.Join(run.Root(), "scheduler", "plugins", "gpupacking", "README.md")
}

// Lines of the page around the tables without a scheduler and with kube-schedulers.
const (
	beforePolicies   = "<!-- policies: make fgd-table -->\n"
	beforeSchedulers = "<!-- schedulers: make fgd-table -->\n"
	after            = "<!-- end -->\n"
)

// Page returns a page with the tables of results.
func Page(page string, results []Result, authors Authors) (string, error) {
	var schedulers strings.Builder
	for _, release := range releases(results) {
		if release != NoScheduler {
			fmt.Fprintf(&schedulers, "\nkube-scheduler %s:\n\n%s", release, Table(results, authors, release))
		}
	}
	page, err := replace(page, beforePolicies, Table(results, authors, NoScheduler))
	if err != nil {
		return "", err
	}
	return replace(page, beforeSchedulers, strings.TrimPrefix(schedulers.String(), "\n"))
}

// replace replaces the text between two lines of a page.
func replace(page, before, text string) (string, error) {
	start, rest, found := strings.Cut(page, before)
	_, end, closed := strings.Cut(rest, after)
	if !found || !closed {
		return "", fmt.Errorf("page has no lines %s and %s", strings.TrimSpace(before), strings.TrimSpace(after))
	}
	return start + before + text + after + end, nil
}
