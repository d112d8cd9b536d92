package spec

import (
	"cmp"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// Simulation returns the scheduler that [Spec.Scheduler] deploys, to run it on this machine: with
// the plugins from the flags with and imports, or from the file.
func (s *Spec) Simulation(with, imports []string) (pack.Scheduler, error) {
	r := pack.Scheduler{Name: s.Name, Branch: s.Branch}
	request, err := s.Request()
	if err != nil {
		return r, err
	}
	source := &request.Spec.Source
	if len(with) > 0 {
		if source.Plugins, err = s.file.plugins(with); err != nil {
			return r, err
		}
	}
	if r.Plugins, err = s.packPlugins(source.Plugins); err != nil {
		return r, err
	}
	if len(imports) > 0 {
		source.Imports = imports
	}
	deployed, err := s.Extenders()
	if err != nil {
		return r, err
	}
	for _, e := range deployed {
		r.Deployed = append(r.Deployed, deploy.CallOf(e.Extender))
	}
	if r.From, err = s.file.from(source.From); err != nil {
		return r, err
	}
	r.Imports, r.Go, r.Unconfirmed = source.Imports, source.Go, s.unconfirmedCode(*source)
	r.Recorded = r.Unconfirmed != nil
	named := *request
	named.Name = cmp.Or(named.Name, corev1.DefaultSchedulerName)
	if r.Configuration, _, err = deploy.Rendering(&named); err != nil {
		return r, err
	}
	r.Configuration.Confined = !s.file.local
	r.Args, r.Unused, r.Request = request.Spec.Args, unused(request.Spec), s.written(request)
	return r, nil
}

// written returns the request as a file in any directory: with complete paths, and without the
// contents of files. A recorded request's files are in a separate directory, into which the user
// has to put them: a cluster's paths are never paths on this machine.
func (s *Spec) written(r *v1alpha1.CustomScheduler) *v1alpha1.CustomScheduler {
	made := r.DeepCopy()
	made.Annotations = nil
	made.Spec.Source.Branch = s.Branch
	for i := range made.Spec.Source.Plugins {
		p := &made.Spec.Source.Plugins[i]
		p.Path, p.Content = s.file.written(p.Path), nil
	}
	for _, e := range made.Spec.Extenders {
		if t := e.TLSConfig; t != nil {
			t.CAData, t.CertData, t.KeyData = nil, nil, nil
			for _, file := range []*string{&t.CA, &t.CertFile, &t.KeyFile} {
				if *file != v1alpha1.CAAuto {
					*file = s.file.written(*file)
				}
			}
		}
	}
	if !s.file.local {
		i := &made.Spec.Image
		made.Spec.Source.From, i.Busybox = s.file.written(made.Spec.Source.From), s.file.written(i.Busybox)
		if !image.IsReference(i.Base) {
			i.Base = s.file.written(i.Base)
		}
	}
	return made
}

// written returns the path of the document's file for another document.
func (d *document) written(name string) string {
	if name == "" {
		return ""
	}
	path, err := d.path("", name)
	if err != nil {
		return "recorded/" + filepath.Base(name)
	}
	return absolute(path)
}

// unused returns the fields that describe the scheduler's image and pods. They do not affect its
// decisions on a copy of the objects, unless its pods cannot run.
func unused(r v1alpha1.CustomSchedulerSpec) (fields []string) {
	i := r.Image
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"image", i.Reference+i.Repository+i.Tag+i.Base+i.Busybox+i.RequireSignature+i.PullPolicy != "" ||
			len(i.Platforms) > 0},
		{"credentials", deploy.IsChosen(r.Credentials)},
		{"route", r.Route != nil},
		{"rollout", r.Rollout != nil},
		{"replicas", r.Replicas != 0},
		{"nodeSelector", len(r.NodeSelector) > 0},
		{"anyNode", r.AnyNode},
		{"ports", r.Ports != v1alpha1.Ports{}},
		{"tolerations", len(r.Tolerations) > 0},
		{"priorityClassName", r.PriorityClassName != ""},
		{"resources", len(r.Resources.Requests)+len(r.Resources.Limits) > 0},
		{"rbac", len(r.RBAC.Rules) > 0 || r.RBAC.AuthenticationReader != nil},
	} {
		if field.set {
			fields = append(fields, "spec."+field.name)
		}
	}
	return fields
}
