package kubeapi

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answers returns an attempt that gives these errors, one after the other, and the last for ever.
func answers(errs ...error) (attempt func(context.Context) error, count *int) {
	count = new(int)
	return func(context.Context) error {
		err := errs[min(*count, len(errs)-1)]
		*count++
		return err
	}, count
}

func TestRetrierTriesAgainWhatPasses(t *testing.T) {
	refused := request(dial(syscall.ECONNREFUSED))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("no"))
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "x")
	cases := map[string]struct {
		reached  bool // a request was answered before
		errs     []error
		attempts int
		want     error // nil: success
	}{
		"success":                            {false, []error{nil}, 1, nil},
		"never reached":                      {false, []error{refused, nil}, 1, syscall.ECONNREFUSED},
		"away for a moment":                  {true, []error{refused, refused, nil}, 3, nil},
		"refuses while it starts":            {true, []error{refused, forbidden, nil}, 3, nil},
		"refuses without having been away":   {true, []error{forbidden, nil}, 1, forbidden},
		"starting when it is asked first":    {false, []error{apierrors.NewServiceUnavailable("starting"), nil}, 2, nil},
		"answers no after it has come back":  {true, []error{refused, missing, nil}, 2, missing},
		"answers no":                         {true, []error{missing, nil}, 1, missing},
		"stays away for longer than patient": {true, []error{refused}, 2, syscall.ECONNREFUSED},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Retrier{Patience: time.Minute}
			if tc.want != nil && tc.attempts == 2 && len(tc.errs) == 1 {
				r.Patience = time.Millisecond
			}
			r.reached.Store(tc.reached)
			attempt, count := answers(tc.errs...)
			err := r.Do(t.Context(), "read x", attempt)
			if !errors.Is(err, tc.want) || *count != tc.attempts {
				t.Errorf("%d attempts, want %d; error %v, want %v", *count, tc.attempts, err, tc.want)
			}
			if away := r.Outages() > 0; away != (tc.attempts > 1) {
				t.Errorf("%d outages", r.Outages())
			}
		})
	}
}

func TestRetrierEndsWithItsContext(t *testing.T) {
	refused := request(dial(syscall.ECONNREFUSED))
	t.Run("cancelled", func(t *testing.T) {
		r := &Retrier{}
		r.reached.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		err := r.Do(ctx, "read x", func(context.Context) error { cancel(); return refused })
		var unreachable *UnreachableError
		if !errors.Is(err, context.Canceled) || errors.As(err, &unreachable) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("deadline while the server is away", func(t *testing.T) {
		r := &Retrier{}
		r.reached.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		attempt, _ := answers(refused)
		err := r.Do(ctx, "read x", attempt)
		var unreachable *UnreachableError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &unreachable) {
			t.Errorf("error is %v", err)
		}
	})
}
