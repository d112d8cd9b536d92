package kubeapi

import (
	"context"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListFunc is a typed client's list request.
type ListFunc[T any] = func(context.Context, metav1.ListOptions) (T, error)

// GetFunc is a typed client's get request.
type GetFunc[T any] = func(context.Context, string, metav1.GetOptions) (*T, error)

// Read returns the result of read, which it calls as [Retrier.Do] does.
func Read[T any](ctx context.Context, r *Retrier, doing string,
	read func(context.Context) (T, error)) (got T, err error) {
	err = r.Do(ctx, doing, func(ctx context.Context) (err error) {
		got, err = read(ctx)
		return err
	})
	return got, err
}

// List returns the result of a typed client's list request.
func List[T any](ctx context.Context, r *Retrier, doing string, list ListFunc[T], o metav1.ListOptions) (T, error) {
	return Read(ctx, r, doing, func(ctx context.Context) (T, error) { return list(ctx, o) })
}

// Get returns the result of a typed client's get request for the object with a kind and a name.
func Get[T any](ctx context.Context, r *Retrier, get GetFunc[T], kind, namespace, name string) (*T, error) {
	return Read(ctx, r, "read "+ObjectName(kind, namespace, name), func(ctx context.Context) (*T, error) {
		return get(ctx, name, metav1.GetOptions{})
	})
}

// Create returns the result of a typed client's create request. If the object exists, an attempt
// whose response was lost has created it, and Create returns object.
func Create[T any](
	ctx context.Context, r *Retrier, doing string, create func(context.Context, *T, metav1.CreateOptions) (*T,
		error), object *T,
) (*T, error) {
	return Read(ctx, r, doing, func(ctx context.Context) (*T, error) {
		created, err := create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return object, nil
		}
		return created, err
	})
}

// Find is [Get] for an object that may not exist: it returns nil then.
func Find[T any](ctx context.Context, r *Retrier, get GetFunc[T], kind, namespace, name string) (*T, error) {
	got, err := Get(ctx, r, get, kind, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return got, err
}

// Retrying returns a typed client's list request with the retries of [Retrier.Do].
func Retrying[T any](r *Retrier, doing string, list ListFunc[T]) ListFunc[T] {
	return func(ctx context.Context, o metav1.ListOptions) (T, error) { return List(ctx, r, doing, list, o) }
}

// Pages returns a list's pages, with at most o.Limit objects each. It ends with the first error.
func Pages[T interface{ GetContinue() string }](
	ctx context.Context, list ListFunc[T], o metav1.ListOptions,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, err := list(ctx, o)
			if !yield(page, err) || err != nil {
				return
			}
			if o.Continue = page.GetContinue(); o.Continue == "" {
				return
			}
		}
	}
}
