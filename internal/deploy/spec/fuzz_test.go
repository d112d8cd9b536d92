package spec

import (
	"bytes"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// FuzzFile searches files that crash their reader, or that are refused with an error that is not
// the user's.
func FuzzFile(f *testing.F) {
	const head = "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: my-scheduler}\n"
	for _, text := range []string{
		head, head + "spec: {source: {branch: v1.24}, preset: binpack, replicas: 2}\n",
		head +
			"spec:\n  plugins: [{name: timestamp}]\n  rbac: {rules: [{apiGroups: [''], resources: [pods], verbs: [patch]}]}\n",
		head +
			"spec:\n  extenders:\n  - {name: a, urlPrefix: 'http://x', filterVerb: filter, ignorable: true}\n  - {name: b, " +
			"ignorable: false, policies: [{name: blockall, args: {namespaces: [x]}}]}\n",
		"", "- a\n", head + "spec: &a {x: *a}\n", head + "---\n" + head,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(Flags{File: "-", Stdin: bytes.NewReader(text)})
		if err != nil {
			mustBeInvalid(t, err)
			return
		}
		for _, read := range []func() error{
			func() error { _, _, err := s.Scheduler(); return err },
			func() error { _, err := s.Extenders(); return err },
			func() error { _, err := s.Plugins(); return err },
			func() error { _, err := s.Image(); return err },
			func() error {
				request, err := s.Request()
				if err == nil {
					_, _, err = deploy.CalledExtenders(request)
				}
				return err
			},
			func() error { _, err := s.Build(BuildFlags{}); return err },
			s.RequireName,
		} {
			if err := read(); err != nil {
				mustBeInvalid(t, err)
			}
		}
	})
}

func mustBeInvalid(t *testing.T, err error) {
	t.Helper()
	if !problem.IsInvalid(err) {
		t.Fatalf("the error is not one of the input: %v", err)
	}
}
