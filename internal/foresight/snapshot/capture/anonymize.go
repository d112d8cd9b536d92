package capture

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
)

// anonymize replaces the names in all objects, which are in order.
func (o *spooled) anonymize(ctx context.Context, kinds []*snapshot.Kind, dir string) error {
	key, err := o.anonymizationKey()
	if err != nil {
		return err
	}
	replaced, err := NewSpool(dir)
	if err != nil {
		return err
	}
	original := o.spool
	o.spool = replaced
	a := snapshot.NewAnonymizer(key)
	for _, pass := range []struct {
		object func(*snapshot.Kind, []byte) error
		event  func(kind *snapshot.Kind, key string, e snapshot.Event) error
	}{
		{a.Learn, func(kind *snapshot.Kind, _ string, e snapshot.Event) error { return a.Learn(kind, e.Object) }},
		{
			func(kind *snapshot.Kind, text []byte) error { return anonymizeObject(a, kind, text, replaced) },
			func(kind *snapshot.Kind, key string, e snapshot.Event) error {
				return anonymizeEvent(a, kind, key, e, replaced)
			},
		},
	} {
		for i := range o.header.Resources {
			r := &o.header.Resources[i]
			if err := eachObject(ctx, findKind(kinds, r), r, original, pass.object); err != nil {
				return errors.Join(err, original.Close())
			}
		}
		if err := eachEvent(kinds, original, pass.event); err != nil {
			return errors.Join(err, original.Close())
		}
	}
	o.header.Anonymized = true
	o.sort() // the keys have changed
	return original.Close()
}

// findKind returns a resource's kind, or nil if the snapshot that has it names the kind.
func findKind(kinds []*snapshot.Kind, r *snapshot.Resource) *snapshot.Kind {
	for _, kind := range kinds {
		if kind.GroupResource() == r.GroupResource() {
			return kind
		}
	}
	return nil
}

// eachObject calls do for a resource's objects.
func eachObject(ctx context.Context, kind *snapshot.Kind, r *snapshot.Resource, from *Spool,
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

// eachEvent calls do for the events in a recording.
func eachEvent(
	kinds []*snapshot.Kind, from *Spool, do func(kind *snapshot.Kind, key string, e snapshot.Event) error,
) error {
	return from.Each(archive.Events, func(key string, text []byte) error {
		e, err := snapshot.DecodeEvent(text)
		if err != nil {
			return fmt.Errorf("read a stored event: %w", err)
		}
		var about struct{ APIVersion, Kind string }
		if err := json.Unmarshal(e.Object, &about); err != nil {
			return fmt.Errorf("read a stored event: %w", err)
		}
		kind, _ := snapshot.Find(kinds, about.APIVersion, about.Kind)
		return do(kind, key, e)
	})
}

func anonymizeObject(a *snapshot.Anonymizer, kind *snapshot.Kind, text []byte, to *Spool) error {
	key, text, err := withoutNames(a, kind, text)
	if err != nil {
		return err
	}
	return to.Add(kind.GroupResource(), key, text)
}

func anonymizeEvent(
	a *snapshot.Anonymizer, kind *snapshot.Kind, key string, e snapshot.Event, to *Spool,
) error {
	_, text, err := withoutNames(a, kind, e.Object)
	if err != nil {
		return err
	}
	return to.Add(archive.Events, key, snapshot.EncodeEvent(e.At(), e.Gone, text))
}

// withoutNames returns the key and the JSON for an object whose names are replaced.
func withoutNames(a *snapshot.Anonymizer, kind *snapshot.Kind, text []byte) (key string, replaced []byte, err error) {
	object, err := snapshot.Decode(text)
	if err != nil {
		return "", nil, fmt.Errorf("read a stored %s: %w", kind.Name, err)
	}
	if object, err = a.Object(kind, object); err != nil {
		return "", nil, problem.Invalidf("without --resource, or without --anonymize", "%w", err)
	}
	if key, err = kind.Key(object); err != nil {
		return "", nil, err
	}
	if replaced, err = snapshot.Encode(object); err != nil {
		return "", nil, fmt.Errorf("store a %s: %w", kind.Name, err)
	}
	return key, replaced, nil
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
