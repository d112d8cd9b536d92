package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// table is the comparison between one table and a release.
type table struct {
	Name string
	// File is the Go file with its rows.
	File string
	// Differences are the rows to add or to end, one line each.
	Differences []string
	// Notes are facts without a row.
	Notes []string
}

// comparison compares the tables with a release's source.
type comparison struct {
	source *source
	// facts is a release in the minor release whose rows are compared, rules are its rules.
	facts versions.Release
	rules versions.Rules
	// before is the source of the tested release in the previous minor, nil for the oldest.
	before *source
	tables []table
}

// compare compares every table.
func compare(s, before *source, facts versions.Release) []table {
	c := &comparison{source: s, before: before, facts: facts, rules: facts.Rules()}
	for _, check := range []func(){
		c.checkReleases, c.checkGo, c.checkConfigAPIs, c.checkConfigFields, c.checkPluginArguments,
		c.checkPlugins, c.checkRejectedPlugins, c.checkDefaultPlugins, c.checkExtensionPoints, c.checkUnsignedPlugins,
		c.checkGates, c.checkGangs, c.checkFlags, c.checkMetrics, c.checkResources, c.checkPermissions, c.checkPorts,
		c.checkExtenderTypes, c.checkMethods, c.checkInterfaces, c.checkSwitches, c.checkLists, c.checkKubeadm,
		c.checkMirrors,
	} {
		check()
	}
	return c.tables
}

// begin starts the next table.
func (c *comparison) begin(name, file string) {
	c.tables = append(c.tables, table{Name: name, File: file})
}

// differ adds a difference to the current table.
func (c *comparison) differ(format string, args ...any) {
	t := &c.tables[len(c.tables)-1]
	t.Differences = append(t.Differences, fmt.Sprintf(format, args...))
}

// note adds a fact that needs no row.
func (c *comparison) note(format string, args ...any) {
	t := &c.tables[len(c.tables)-1]
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// differLists adds the names that only one list has.
func (c *comparison) differLists(what string, table, release []string) {
	for _, name := range unique(release) {
		if !slices.Contains(table, name) {
			c.differ("add from %s on: %s %s", c.minor(), what, name)
		}
	}
	for _, name := range unique(table) {
		if !slices.Contains(release, name) {
			c.differ("end before %s: %s %s", c.minor(), what, name)
		}
	}
}

// differValues adds a difference between two values.
func (c *comparison) differValues(what string, table, release any) {
	if have, read := fmt.Sprint(table), fmt.Sprint(release); have != read {
		c.differ("from %s on: %s is %s, the table has %s", c.minor(), what, orNone(read), orNone(have))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (c *comparison) minor() string { return c.source.release.MinorString() }

// printed returns the comparison as text.
func printed(tables []table, release, facts versions.Release) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, compared with the rows of %s\n", release, facts.MinorString())
	differing := 0
	for _, t := range tables {
		if len(t.Differences) == 0 {
			fmt.Fprintf(&out, "ok      %s\n", t.Name)
		} else {
			differing++
			fmt.Fprintf(&out, "DIFFERS %s: %s\n", t.Name, t.File)
		}
		for _, d := range t.Differences {
			fmt.Fprintf(&out, "        %s\n", d)
		}
		for _, n := range t.Notes {
			fmt.Fprintf(&out, "        note: %s\n", n)
		}
	}
	fmt.Fprintf(&out, "%d of %d tables differ\n", differing, len(tables))
	return out.String()
}
