package deploy

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// KeepKey returns the public key that must sign a scheduler's image, or "": the key in its request,
// or else the deployed scheduler's, which is recorded. warning is set if the request lifts the
// recorded requirement.
func KeepKey(requested, recorded string) (key, warning string) {
	switch {
	case requested == "":
		return recorded, ""
	case requested != v1alpha1.NoSignature:
		return requested, ""
	case recorded != "":
		warning = "the image needs no signature any more: --require-signature none lifts the recorded requirement"
	}
	return "", warning
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
