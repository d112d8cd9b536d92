//go:build linux

package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const head = `# Conformance

` + "`make conformance RELEASE=v1.24.3`" + ` (as root) runs the e2e specs of scheduling that Kubernetes
publishes with a release against that release, and writes this page. The suite is compiled from the
release's own module, before 1.34 without the packages that have no specs of scheduling. The specs
have the same order in each column, which is a cluster of its own that kubeadm made, with one
control-plane node and two workers with kubelets, all on one machine:

- **stock**: the scheduler that kubeadm started.
- **replace**: the default scheduler after ` + "`pmk-sched replace`" + ` with every bundled plugin, whose
  arguments leave the pods of others alone.
- **second**: a second scheduler with the same plugins; a webhook gives it every pod of the
  namespaces of the specs that names no scheduler.

The run fails if a spec passes with the stock scheduler and not in another column. A spec that fails
is run once more, alone; if it passes then, it counts as passed and is listed below. In lists, a
release without a column stands for all three.

## Results

Specs of ` + "`[sig-scheduling]`" + ` that passed, of all that ran; in brackets, those of them that are
part of the conformance suite. From 1.34 on these include the specs of dynamic resource
allocation that Kubernetes names ` + "`[sig-node] [DRA] control plane`" + `: claims are allocated and pods
are bound. Those named ` + "`kubelet`" + ` are not run: they need a container runtime with CDI (containerd
1.7), and the labs use Debian's 1.6.

| release | stock | replace | second | excluded | minutes per column |
|---|---|---|---|---|---|
`

// Page returns the page of the documentation with the results of the specs and of the integration
// tests.
func Page(results []Result, tests []Tests) string {
	var page strings.Builder
	page.WriteString(head)
	var releases []string
	for _, r := range Sort(results) {
		if !slices.Contains(releases, r.Release) {
			releases = append(releases, r.Release)
		}
	}
	for _, release := range releases {
		page.WriteString(row(release, results))
	}
	list(&page, "## Failed", "Specs that failed twice, with the message.", results, Failed)
	list(&page, "## Passed when run again", "Specs that failed once.", results, Retried)
	list(&page, "## Excluded", "Specs that these clusters cannot run, with the reason.", results, Excluded)
	page.WriteString(integration(tests))
	return page.String()
}

// row returns the row of a release.
func row(release string, results []Result) string {
	var cells []string
	excluded, longest := map[string]bool{}, 0.0
	for _, column := range Columns() {
		passed, ran, part, seconds := 0, 0, 0, 0.0
		for _, r := range results {
			if r.Release != release || r.Column != column {
				continue
			}
			seconds += r.Seconds
			if r.Outcome == Excluded {
				excluded[r.Spec] = true
				continue
			}
			ran++
			if r.passed() {
				passed++
				part += strings.Count(r.Spec, "[Conformance]")
			}
		}
		longest = max(longest, seconds)
		cells = append(cells, fmt.Sprintf("%d of %d (%d)", passed, ran, part))
	}
	return fmt.Sprintf("| %s | %s | %d | %.0f |\n", release, strings.Join(cells, " | "), len(excluded), longest/60)
}

// list writes the specs with an outcome, each once, with their notes and the releases and columns,
// or with the release alone if it is so in all columns.
func list(page *strings.Builder, title, text string, results []Result, outcome string) {
	bySpec := map[string][]Result{}
	for _, r := range Sort(results) {
		if r.Outcome == outcome {
			bySpec[r.Spec] = append(bySpec[r.Spec], r)
		}
	}
	if len(bySpec) == 0 {
		return
	}
	fmt.Fprintf(page, "\n%s\n\n%s\n\n| spec | reason | where |\n|---|---|---|\n", title, text)
	for _, spec := range slices.Sorted(maps.Keys(bySpec)) {
		var notes []string
		for _, r := range bySpec[spec] {
			if note := short(r.Note); !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", cell(spec), cell(strings.Join(notes, "; ")), places(bySpec[spec]))
	}
}

// places returns the releases and columns of sorted results as text.
func places(results []Result) string {
	columns := map[string]int{}
	for _, r := range results {
		columns[r.Release]++
	}
	var texts []string
	for _, r := range results {
		if columns[r.Release] == len(Columns()) {
			texts = append(texts, r.Release)
		} else {
			texts = append(texts, r.Release+" "+string(r.Column))
		}
	}
	return strings.Join(slices.Compact(texts), ", ")
}

// The page has the first and the last bytes of a long message: an error of Gomega begins with its
// position in the source and ends with its text, after a dump of the object.
const first, last = 100, 200

// short returns the beginning and the end of a message.
func short(text string) string {
	if len(text) <= first+last {
		return text
	}
	return strings.ToValidUTF8(text[:first], "") + "…" + strings.ToValidUTF8(text[len(text)-last:], "")
}

// cell returns a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}
