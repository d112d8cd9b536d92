package spec

import (
	"cmp"
	"path/filepath"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
)

// Of returns the spec for a request from origin that names no file. Nobody is asked to confirm its
// permissions: the controller grants none that it does not have, and a user who takes a scheduler
// over has seen them.
func Of(f Flags, request *v1alpha1.CustomScheduler, origin string) (*Spec, error) {
	d, err := recordedDocument(deploy.Installed{Request: request, Origin: origin})
	if err != nil {
		return nil, err
	}
	d.confirmed = true
	return resolve(f, d)
}

// OfHandmade returns the spec for a scheduler that was read from the manifests in origin.
func OfHandmade(f Flags, found *handmade.Scheduler, origin string) (*Spec, error) {
	s, err := Of(f, found.Request, origin)
	if err == nil {
		s.file.copied = &deploy.CopiedFrom{Name: origin, Places: found.Places}
	}
	return s, err
}

// recordedDocument returns a deployed scheduler's request as a document that names no file.
func recordedDocument(r deploy.Installed) (*document, error) {
	d := &document{CustomScheduler: r.Request.DeepCopy(), origin: cmp.Or(r.Origin, "the recorded request"), built: r.Built}
	if err := d.ValidateRecorded(); err != nil {
		return nil, problem.Invalidf(giveFile, "%s: %w", d.origin, err)
	}
	return d, nil
}

// giveFile is the hint for a recorded request that needs a file on this machine.
const giveFile = "name the file of the scheduler with -f pmk-sched.yaml: its files are read"

// path returns the path to a file that a field in the document names. It is the only way to one: a
// recorded request names no file.
func (d *document) path(field, name string) (string, error) {
	if !d.local {
		return "", d.refuse(field, name)
	}
	if filepath.IsAbs(name) {
		return name, nil
	}
	return filepath.Join(d.dir, name), nil
}

// refuse returns the error for a field in a recorded request that a user's file may have.
func (d *document) refuse(field, name string) error {
	return problem.Invalidf(giveFile, "%s: %s is %q; files and repositories are not read for a request that comes out of "+
		"a cluster", d.origin, field, name)
}

// from returns spec.source.from.
func (d *document) from(value string) (string, error) {
	if value == "" || d.local || d.built != nil && d.built.From == value {
		return value, nil
	}
	return "", d.refuse("spec.source.from", value)
}

// base returns the image's base from spec.image.
func (d *document) base(base, busybox string) (image.Base, error) {
	known := d.local || d.built != nil && d.built.Base == base && d.built.Busybox == busybox
	switch {
	case known || base == "" && busybox == "":
		return parseBase(base, busybox)
	case busybox != "":
		return image.Base{}, problem.WithHint(d.refuse("spec.image.busybox", busybox), "name one with --busybox")
	case !image.IsReference(base):
		return image.Base{}, problem.WithHint(d.refuse("spec.image.base", base), "name one with --base")
	}
	return image.Base{Reference: base}, nil
}
