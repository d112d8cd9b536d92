package capture

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/diskqueue"
)

// anonymize replaces the names in all objects, which are in order.
func (o *spooled) anonymize(ctx context.Context, kinds []*snapshot.Kind, dir string) error {
	key, err := o.anonymizationKey()
	if err != nil {
		return err
	}
	replaced, err := diskqueue.New(dir)
	if err != nil {
		return err
	}
	original := o.spool
	o.spool = replaced
	a := snapshot.NewAnonymizer(key)
	for _, pass := range []func(*snapshot.Kind, []byte) error{
		a.Learn,
		func(kind *snapshot.Kind, text []byte) error { return anonymizeObject(a, kind, text, replaced) },
	} {
		for i := range o.header.Resources {
			r := &o.header.Resources[i]
			if err := eachObject(ctx, findKind(kinds, r), r, original, pass); err != nil {
				return errors.Join(err, original.Close())
			}
		}
	}
	o.header.Anonymized = true
	o.sort() // the keys have changed
	return original.Close()
}

// findKind returns the kind of a resource, or nil if the snapshot that has it names the kind.
func findKind(kinds []*snapshot.Kind, r *snapshot.Resource) *snapshot.Kind {
	for _, kind := range kinds {
		if kind.GroupResource() == r.GroupResource() {
			return kind
		}
	}
	return nil
}

// eachObject calls do for the objects of a resource.
func eachObject(ctx context.Context, kind *snapshot.Kind, r *snapshot.Resource, from *diskqueue.Spool,
	do func(*snapshot.Kind, []byte) error) error {
	if kind == nil {
		return problem.Invalidf("take the snapshot again without --resource",
			"replace names in %s: it is not known which of their fields are names", r.GroupResource())
	}
	return from.Each(r.GroupResource(), func(_ string, text []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return do(kind, text)
	})
}

func anonymizeObject(a *snapshot.Anonymizer, kind *snapshot.Kind, text []byte, to *diskqueue.Spool) error {
	object, err := snapshot.Decode(text)
	if err != nil {
		return fmt.Errorf("read a stored %s: %w", kind.Name, err)
	}
	if object, err = a.Object(kind, object); err != nil {
		return problem.Invalidf("without --resource, or without --anonymize", "%w", err)
	}
	key, err := kind.Key(object)
	if err != nil {
		return err
	}
	if text, err = snapshot.Encode(object); err != nil {
		return fmt.Errorf("store a %s: %w", kind.Name, err)
	}
	return to.Add(kind.GroupResource(), key, text)
}

// anonymizationKey returns the UID of the namespace kube-system, so that snapshots of one cluster
// have the same names, or, if there is none, a hash of all objects. Neither is in a snapshot whose
// names are replaced.
func (o *spooled) anonymizationKey() ([]byte, error) {
	var key []byte
	hash := sha256.New()
	for i := range o.header.Resources {
		resource := o.header.Resources[i].GroupResource()
		err := o.spool.Each(resource, func(name string, text []byte) error {
			hash.Write(text)
			if resource != "namespaces" || name != metav1.NamespaceSystem {
				return nil
			}
			object, err := snapshot.Decode(text)
			if err != nil {
				return fmt.Errorf("read a stored Namespace: %w", err)
			}
			key = []byte(snapshot.UID(object))
			return nil
		})
		if err != nil || len(key) > 0 {
			return key, err
		}
	}
	return hash.Sum(nil), nil
}
