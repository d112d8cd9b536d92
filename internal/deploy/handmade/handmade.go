// Package handmade reads a second scheduler that was set up without pmk-sched into a request: the
// manifests in Platform9's article or in the Kubernetes documentation, the values of
// scheduler-plugins' Helm chart, or a cluster's objects. It does no I/O.
package handmade

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// Action is what becomes of a part of the scheduler.
type Action string

// The actions.
const (
	Kept    Action = "kept"
	Changed Action = "changed"
	Removed Action = "removed"
	// Open is a part that the user has to decide about.
	Open Action = "open"
)

// Item is one part of the scheduler, with what becomes of it and why.
type Item struct {
	Action  Action `json:"action"`
	Subject string `json:"subject"`
	Detail  string `json:"detail"`
}

// Scheduler is what was read.
type Scheduler struct {
	// Request deploys the same scheduler with pmk-sched.
	Request *v1alpha1.CustomScheduler `json:"request"`
	Items   []Item                    `json:"items"`
	// Places are the positions in the source of the lines of the request's configuration. They are
	// empty if the user does not have the source.
	Places map[int]node.Position `json:"-"`
	// Objects are the objects that pmk-sched replaces, in the order of the source.
	Objects []Object `json:"-"`
}

// Object names an object.
type Object struct{ APIVersion, Kind, Namespace, Name string }

func (s *Scheduler) item(action Action, subject, format string, args ...any) {
	s.Items = append(s.Items, Item{Action: action, Subject: subject, Detail: fmt.Sprintf(format, args...)})
}

// reading is one call of [Read].
type reading struct {
	Scheduler
	objects []*yaml.Node
	spec    *v1alpha1.CustomSchedulerSpec
}

// Read reads the scheduler in a source. name is its name in errors, usually a file name. It returns
// nil if there is neither a workload that runs kube-scheduler nor a configuration. Several are an
// error.
func Read(name string, source []byte) (*Scheduler, error) {
	r := &reading{Scheduler: Scheduler{Request: &v1alpha1.CustomScheduler{}}}
	r.Request.APIVersion, r.Request.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	r.spec = &r.Request.Spec
	parts, notes := schema.Parts(source)
	for _, note := range notes {
		r.item(Changed, name, "%s", note)
	}
	for _, part := range parts {
		switch salvaged := salvage(part); {
		case part.Problem == nil:
			r.objects = append(r.objects, part.Objects...)
		case salvaged != nil:
			r.objects = append(r.objects, salvaged)
			r.item(Changed, nameOf(salvaged), "lines %d to %d are not valid YAML (%s): the name, the image, the flags, the "+
				"replicas and the node selector were read line by line: compare them. All else, such as resources and "+
				"tolerations, was not read: add it to the file from --to-file", part.First, part.Last, part.Problem.Message)
		}
	}
	w, err := r.workload(name)
	if err != nil {
		return nil, err
	}
	configured, err := r.configuration(name, sound(parts))
	if err != nil {
		return nil, err
	}
	if w == nil && !configured {
		return nil, nil
	}
	if w != nil {
		r.take(w)
	}
	r.chartValues()
	if err := r.identify(w); err != nil {
		return nil, err
	}
	r.plugins()
	return &r.Scheduler, r.others(w)
}

// sound returns the documents that are not damaged, at their lines in the source.
func sound(parts []schema.Part) []byte {
	var lines [][]byte
	for _, part := range parts {
		own := bytes.Split(part.Text, []byte("\n"))
		if lines == nil {
			lines = make([][]byte, len(own))
		}
		if part.Problem != nil {
			continue
		}
		copy(lines[part.First-1:part.Last], own[part.First-1:part.Last])
		if part.First > 1 {
			lines[part.First-2] = []byte("---")
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// configuration takes the source's configuration.
func (r *reading) configuration(name string, source []byte) (found bool, err error) {
	doc, err := schema.Parse(name, source)
	if err != nil {
		if !slices.ContainsFunc(r.objects, hasConfiguration) {
			return false, nil //nolint:nilerr // a scheduler may have flags only
		}
		return false, err
	}
	if doc.Outer != nil {
		return false, problem.Invalidf("convert it first: `pmk-sched profile convert`, and pass the result with --config",
			"%s: a configuration of v1alpha1 with its Policy cannot be taken over in one step", name)
	}
	text, err := schema.Encode(doc.Root)
	if err != nil {
		return false, fmt.Errorf("write the configuration of %s: %w", name, err)
	}
	r.spec.Configuration.Inline = v1alpha1.Document(text)
	r.Places = map[int]node.Position{}
	if copied := r.root(); copied != nil {
		places(r.Places, doc.Root, copied)
	}
	for _, note := range doc.Notes {
		if strings.HasPrefix(note.Message, schema.LeftOut) {
			continue // r.others names each object
		}
		r.item(Changed, "configuration", "%s", note)
	}
	r.item(Kept, "configuration", "%s; `pmk-sched deploy` converts it to the API server's release", apiOf(doc))
	return true, nil
}

// root returns the configuration's root, or nil.
func (r *reading) root() *yaml.Node {
	root, _ := schema.Decode([]byte(r.spec.Configuration.Inline))
	return root
}

func apiOf(doc *schema.Document) string {
	if doc.Policy {
		return "a legacy Policy"
	}
	return doc.API.GroupVersion()
}

// hasConfiguration reports whether an object contains a configuration, even a malformed one.
func hasConfiguration(object *yaml.Node) bool {
	text, err := schema.Encode(object)
	return err == nil && schema.MentionsConfiguration(text)
}

// identify sets the scheduler's name, which its pods have in spec.schedulerName, and its namespace.
func (r *reading) identify(w *workload) error {
	var named, deployed, flag string
	if all := node.Items(r.root(), "profiles"); len(all) > 0 {
		named = node.Text(all[0], "schedulerName")
	}
	if w != nil {
		deployed, flag = w.Name, w.flag("scheduler-name")
		r.Request.Namespace = cmp.Or(w.Namespace, r.Request.Namespace)
	}
	r.Request.Name = cmp.Or(named, flag, r.Request.Name, deployed)
	switch {
	case r.Request.Name == "" || r.Request.Name == defaultScheduler:
		r.Request.Name = deployed
		if deployed == "" {
			return problem.Invalidf("write schedulerName in the configuration's profile, or name it with --name",
				"the scheduler has no name of its own")
		}
		r.item(Changed, "name", "the profile has no name of its own: pods name the scheduler %s", deployed)
	case deployed != "" && deployed != r.Request.Name:
		r.item(Changed, "name", "the objects are named %s as in spec.schedulerName of pods, not %s", r.Request.Name, deployed)
	default:
		r.item(Kept, "name", "%s", r.Request.Name)
	}
	return nil
}

// defaultScheduler is the name of a profile without one.
const defaultScheduler = "default-scheduler"
