package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// record describes a deployed scheduler or extender in its revision. The revision's objects are
// rendered from it, so that a change to one thing is a change to this data and a new plan. Exactly
// one of Scheduler and Extender is set.
type record struct {
	// Request is the user's request for a scheduler, or nil.
	Request *v1alpha1.CustomScheduler `json:"request,omitempty"`
	// Scheduler, with the configuration without its Wirings.
	Scheduler *manifest.Scheduler `json:"scheduler,omitempty"`
	Extender  *manifest.Extender  `json:"extender,omitempty"`
	// Keys are the private keys, which the types above omit from their JSON.
	Keys keys `json:"keys"`
}

// keys are PEM-encoded private keys. Revisions are Secrets, whose objects contain the same keys.
type keys struct {
	Scheduler []byte            `json:"scheduler,omitempty"`
	Clients   map[string][]byte `json:"clients,omitempty"`
	Authority []byte            `json:"authority,omitempty"`
	Server    []byte            `json:"server,omitempty"`
	Client    []byte            `json:"client,omitempty"`
}

// String never shows a key.
func (k keys) String() string { return "private keys" }

// GoString is like String, so that %#v does not print a key.
func (k keys) GoString() string { return k.String() }

// Record returns the plan's description that its revision stores, as JSON. It contains the private
// keys of the scheduler or extender.
func (p *Plan) Record() ([]byte, error) {
	r := record{Extender: p.Extender, Request: p.Request}
	if e := p.Extender; e != nil {
		r.Keys = keys{Authority: e.Certificates.CAKey, Server: e.Certificates.ServerKey, Client: e.Certificates.ClientKey}
	} else {
		s := p.Scheduler
		base := *p.base
		base.Notes = nil // of the source, which is not recorded
		s.Configuration = &base
		r.Scheduler, r.Keys.Scheduler = &s, s.Credentials.Key
		for name, client := range s.ExtenderClients {
			if r.Keys.Clients == nil {
				r.Keys.Clients = map[string][]byte{}
			}
			r.Keys.Clients[name] = client.Key
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", p.Name, err)
	}
	return text, nil
}

// deployAgain is the hint for a revision without a record that can be read.
const deployAgain = "deploy it again from its file or with its flags"

// decodeRecord returns a revision's record.
func decodeRecord(revision *apply.Revision) (*record, error) {
	if len(revision.Record) == 0 {
		return nil, problem.Invalidf(deployAgain, "revision %d of %s does not record how it was deployed", revision.Number,
			revision.Name)
	}
	r, err := unmarshalRecord(revision)
	if err != nil {
		return nil, problem.WithHint(err, deployAgain)
	}
	if e := r.Extender; e != nil {
		e.Certificates.CAKey, e.Certificates.ServerKey, e.Certificates.ClientKey = r.Keys.Authority, r.Keys.Server,
			r.Keys.Client
		return r, nil
	}
	r.Scheduler.Credentials.Key = r.Keys.Scheduler
	for name, client := range r.Scheduler.ExtenderClients {
		client.Key = r.Keys.Clients[name]
		r.Scheduler.ExtenderClients[name] = client
	}
	if r.Request != nil {
		for _, e := range r.Request.Spec.Extenders {
			if e.TLSConfig != nil {
				e.TLSConfig.KeyData = r.Keys.Clients[e.Name]
			}
		}
	}
	return r, nil
}

// unmarshalRecord returns a revision's record without the private keys in their places.
func unmarshalRecord(revision *apply.Revision) (*record, error) {
	r := &record{}
	err := json.Unmarshal(revision.Record, r)
	if err == nil && (r.Scheduler == nil) == (r.Extender == nil) {
		err = errors.New("expected a scheduler or an extender")
	}
	if err == nil && r.Scheduler != nil && r.Scheduler.Configuration == nil {
		err = errors.New("the scheduler has no configuration")
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of revision %d of %s: %w", revision.Number, revision.Name, err)
	}
	return r, nil
}

// RequiredKey returns the public key, in PEM, that must have signed a scheduler's image according
// to its revision's request, or "" if none is required. It returns an error if that cannot be read,
// also if only the revision's objects name a key.
func RequiredKey(revision *apply.Revision) (key string, err error) {
	r := &record{}
	switch {
	case revision.Damage != nil:
		err = revision.Damage
	case len(revision.Record) > 0:
		r, err = unmarshalRecord(revision)
	}
	if err == nil && r.Request != nil {
		return r.Request.Spec.Image.RequireSignature, nil
	}
	if id := manifest.SignedBy(revision.Objects); err == nil && id != "" {
		err = fmt.Errorf("revision %d of %s requires the key %.100s and does not record it", revision.Number, revision.Name, id)
	}
	return "", problem.WithHint(err, "specify the key with --require-signature KEY, or lift the requirement with "+
		"--require-signature none")
}

// WiringsOf returns a deployed scheduler's extenders that pmk-sched deployed.
func WiringsOf(revision *apply.Revision) ([]manifest.Wiring, error) {
	r, err := decodeRecord(revision)
	if err != nil || r.Scheduler == nil {
		return nil, err
	}
	return r.Scheduler.Wirings, nil
}

// ImagesOf returns the images in the pods of a deployed scheduler or extender.
func ImagesOf(revision *apply.Revision) ([]string, error) {
	r, err := decodeRecord(revision)
	if err != nil {
		return nil, err
	}
	if r.Extender != nil {
		return []string{r.Extender.Image}, nil
	}
	images := []string{r.Scheduler.Image}
	for _, w := range r.Scheduler.Wirings {
		if w.Sidecar != nil {
			images = append(images, w.Sidecar.Image)
		}
	}
	return images, nil
}

// PlanOf returns the plan that deploys a revision again, with the revision's objects. Its
// configuration is not checked once more. The error is invalid input if the revision has no record.
func PlanOf(revision *apply.Revision) (*Plan, error) {
	r, err := decodeRecord(revision)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Name: revision.Name, Namespace: revision.Namespace, Objects: revision.Objects, TakenPorts: map[int]string{},
		Request: r.Request, Extender: r.Extender, checked: true, recorded: revision.Objects,
	}
	if r.Extender != nil {
		plan.Release, plan.Scheduler.Image = r.Extender.Release, r.Extender.Image
		return plan, nil
	}
	plan.Scheduler, plan.base, plan.Release = *r.Scheduler, r.Scheduler.Configuration, r.Scheduler.Release
	_, err = plan.configure()
	return plan, err
}

// configure sets the scheduler's configuration: the recorded one and its Wirings. A legacy Policy
// has them already.
func (p *Plan) configure() ([]profiles.Note, error) {
	rendered := *p.base
	p.Scheduler.Configuration = &rendered
	if len(p.Scheduler.Wirings) == 0 || rendered.Policy != nil {
		return nil, nil
	}
	text, notes, err := profiles.SetExtenders(rendered.YAML, p.Release, nil, calls(p.Scheduler.Wirings))
	if err != nil {
		return nil, fmt.Errorf("configure scheduler %s: %w", p.Name, err)
	}
	rendered.YAML = text
	return notes, nil
}

// Render renders Objects from Scheduler or from Extender.
func (p *Plan) Render() (err error) {
	if p.Objects, err = p.render(); p.recorded != nil {
		p.recorded = p.Objects
	}
	return err
}

func (p *Plan) render() ([]*unstructured.Unstructured, error) {
	if p.Extender != nil {
		return manifest.ExtenderObjects(*p.Extender)
	}
	objects, err := manifest.Objects(p.Scheduler)
	if err != nil {
		return nil, fmt.Errorf("render scheduler %s: %w", p.Name, err)
	}
	return objects, nil
}

// Rewire returns the plan for a scheduler's deployed revision with other extenders: it adds the
// extenders in set, which replace extenders with the same name, and removes the extenders named in
// drop. Nothing else changes. The plan is refused when another revision was deployed meanwhile.
func Rewire(revision *apply.Revision, set []manifest.Wiring, drop []string) (*Plan, error) {
	plan, err := PlanOf(revision)
	if err != nil {
		return nil, err
	}
	if plan.base != nil && plan.base.Policy != nil {
		return nil, problem.Invalidf("add the extender to spec.extenders of its file, and deploy that",
			"scheduler %s reads a Policy, in which a single extender cannot be changed", revision.Name)
	}
	kept := slices.DeleteFunc(slices.Clone(plan.Scheduler.Wirings), func(w manifest.Wiring) bool {
		named := func(other manifest.Wiring) bool { return other.Extender.Name == w.Extender.Name }
		return slices.Contains(drop, w.Extender.Name) || slices.ContainsFunc(set, named)
	})
	plan.Scheduler.Wirings = kept
	recorded, err := plan.render() // without the extenders in set, which the user names
	if err != nil {
		return nil, err
	}
	plan.Scheduler.Wirings, plan.Replaces, plan.checked = slices.Concat(kept, set), revision.Number, false
	if err := placeSidecars(plan.Scheduler.Wirings, plan.Scheduler.Port); err != nil {
		return nil, err
	}
	notes, err := plan.configure()
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		plan.Warnings = append(plan.Warnings, n.Message)
	}
	if len(set) > 0 {
		unbatched, err := profiles.FindUnbatched(plan.Scheduler.Configuration.YAML, plan.Release, nil, plan.Gates())
		if err != nil {
			return nil, err
		}
		for _, u := range unbatched {
			plan.Notes = append(plan.Notes, u.String())
		}
	}
	err = plan.Render()
	plan.recorded = recorded
	return plan, err
}
