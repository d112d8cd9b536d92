package deploy

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// record describes a deployed scheduler or extender in its revision. The revision's objects are
// rendered from it, so that a change to one thing is a change to this data and a new plan.
type record struct {
	// Request is a scheduler's request, with the extenders that were added to it.
	Request *v1alpha1.CustomScheduler `json:"request,omitempty"`
	// Scheduler has the decisions that the request leaves open, and the configuration. Plugins and
	// InsecurePort are for the next configuration.
	Scheduler    *manifest.Scheduler `json:"scheduler,omitempty"`
	Plugins      []profiles.Plugin   `json:"plugins,omitempty"`
	InsecurePort int                 `json:"insecurePort,omitempty"`
	// Extender is set for an extender, and nothing above.
	Extender *manifest.Extender `json:"extender,omitempty"`
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
	r := record{Extender: p.Extender, Request: p.Request, Plugins: p.plugins, InsecurePort: p.insecurePort}
	if e := p.Extender; e != nil {
		r.Keys = keys{Authority: e.Certificates.CAKey, Server: e.Certificates.ServerKey, Client: e.Certificates.ClientKey}
	} else {
		s, configuration := p.Scheduler, *p.Scheduler.Configuration
		configuration.Notes = nil // of the source, which is not recorded
		s.Configuration = &configuration
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
	if r.Request == nil {
		return nil, problem.Invalidf(deployAgain, "revision %d of %s does not record its request", revision.Number,
			revision.Name)
	}
	r.Scheduler.Credentials.Key = r.Keys.Scheduler
	for _, e := range r.Request.Spec.Extenders {
		if e.TLSConfig != nil {
			e.TLSConfig.KeyData = r.Keys.Clients[e.Name]
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
	for _, e := range deployedExtenders(r.Request) {
		if e.Sidecar {
			images = append(images, e.Deployed.Image)
		}
	}
	return images, nil
}

// PlanOf returns the plan that deploys a revision again in its own place, with the revision's
// objects. Its configuration is not checked once more. The error is invalid input if the revision
// has no record.
func PlanOf(revision *apply.Revision) (*Plan, error) {
	r, err := decodeRecord(revision)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Name: revision.Name, Namespace: revision.Namespace, Objects: revision.Objects, TakenPorts: map[int]string{},
		Replaces: revision.Number,
		Request:  r.Request, Extender: r.Extender, checked: true, recorded: revision.Objects,
	}
	if r.Extender != nil {
		plan.Release, plan.Scheduler.Image = r.Extender.Release, r.Extender.Image
		return plan, nil
	}
	plan.Scheduler, plan.Release, plan.plugins, plan.insecurePort = *r.Scheduler, r.Scheduler.Release, r.Plugins,
		r.InsecurePort
	return plan, plan.fill()
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
