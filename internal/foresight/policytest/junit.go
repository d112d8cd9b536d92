package policytest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// junitSuites is a report in JUnit's format, with the elements and attributes that GitLab
// (lib/gitlab/ci/parsers/test/junit.rb) and GitHub's actions read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
	Notes    string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes results in JUnit's format.
func WriteJUnit(w io.Writer, results []Result) error {
	all := junitSuites{Name: "pmk-sched test"}
	total := 0.0
	for _, r := range results {
		suite := junitSuite{Name: r.Title(), Time: seconds(r.Seconds), Notes: strings.Join(r.Notes, "\n")}
		for _, o := range r.Expectations {
			c := junitCase{Name: o.Name, Class: r.Title(), File: r.Test, Time: "0"}
			if !o.Met {
				suite.Failures++
				c.Failure = &junitFailure{Message: fmt.Sprintf("expected %s, got %s", o.Expected, o.Got), Type: "expectation",
					Text: failures(o)}
			}
			suite.Cases = append(suite.Cases, c)
		}
		suite.Tests = len(suite.Cases)
		all.Tests, all.Failures, total = all.Tests+suite.Tests, all.Failures+suite.Failures, total+r.Seconds
		all.Suites = append(all.Suites, suite)
	}
	all.Time = seconds(total)
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

// mostFailures limits an expectation's pods and nodes that a report lists.
const mostFailures = 100

func failures(o Outcome) string {
	var b strings.Builder
	for i, f := range o.Failures {
		if i == mostFailures {
			fmt.Fprintf(&b, "and %d more\n", len(o.Failures)-i)
			break
		}
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

// Title returns the test with its snapshot and release.
func (r Result) Title() string {
	if r.Snapshot == "" {
		return r.Test + " at " + r.Release
	}
	return r.Test + " on " + r.Snapshot + " at " + r.Release
}
