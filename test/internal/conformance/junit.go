//go:build linux

package conformance

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// report is the part of a JUnit report that is read. Ginkgo 1 writes one suite as the root, and
// Ginkgo 2 a list of suites.
type report struct {
	Suites []suite `xml:"testsuite"`
	Cases  []spec  `xml:"testcase"`
}

type suite struct {
	Cases []spec `xml:"testcase"`
}

type spec struct {
	Name    string   `xml:"name,attr"`
	Seconds float64  `xml:"time,attr"`
	Skipped *message `xml:"skipped"`
	Failure *message `xml:"failure"`
	Error   *message `xml:"error"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (m *message) String() string {
	text := strings.TrimSpace(m.Message)
	if text == "" {
		text = strings.TrimSpace(m.Text)
	}
	return strings.Join(strings.Fields(text), " ")
}

// ParseReport returns the specs of a JUnit report of the e2e suite: those that ran or skipped
// themselves, and the names of those that the suite's own filter left out. Release and Column of
// the results are empty.
func ParseReport(data []byte) (ran []Result, filtered []string, err error) {
	var r report
	if err := xml.Unmarshal(data, &r); err != nil {
		return nil, nil, fmt.Errorf("parse JUnit report: %w", err)
	}
	cases := r.Cases
	for _, s := range r.Suites {
		cases = append(cases, s.Cases...)
	}
	for _, c := range cases {
		name, isSpec := strings.CutPrefix(c.Name, "[It] ")
		if !isSpec && strings.HasPrefix(name, "[") && !strings.HasPrefix(name, "[sig-") {
			continue // a node of Ginkgo 2 around the specs, such as [SynchronizedBeforeSuite]
		}
		name = strings.Join(strings.Fields(name), " ")
		if c.filtered() {
			filtered = append(filtered, name)
		} else {
			ran = append(ran, c.result(name))
		}
	}
	return ran, filtered, nil
}

// filtered reports whether the suite's filter left the spec out: then the report has a skip without
// a reason, or, since Ginkgo 2, with the reason "skipped".
func (s spec) filtered() bool {
	return s.Failure == nil && s.Error == nil && s.Skipped != nil &&
		(s.Skipped.String() == "" || s.Skipped.String() == "skipped")
}

func (s spec) result(name string) Result {
	r := Result{Spec: name, Outcome: Passed, Seconds: s.Seconds}
	switch {
	case s.Failure != nil:
		r.Outcome, r.Note = Failed, s.Failure.String()
	case s.Error != nil:
		r.Outcome, r.Note = Failed, s.Error.String()
	case s.Skipped != nil:
		r.Outcome, r.Note = Excluded, s.Skipped.String()
	}
	return r
}
