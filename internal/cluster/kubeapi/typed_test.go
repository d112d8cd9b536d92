package kubeapi

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPagesEndWithTheLastPageOrAnError(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fails, stops string // token
		want         []string
		err          error
	}{
		"all":   {want: []string{"", "2", "3"}},
		"error": {fails: "2", want: []string{"", "2"}, err: broken},
		"stop":  {stops: "2", want: []string{"", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			list := func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
				asked = append(asked, o.Continue)
				if c.fails != "" && o.Continue == c.fails {
					return nil, broken
				}
				next := map[string]string{"": "2", "2": "3"}[o.Continue]
				return &corev1.PodList{ListMeta: metav1.ListMeta{Continue: next}}, nil
			}
			var last error
			for _, err := range Pages(t.Context(), list, metav1.ListOptions{Limit: 1}) {
				if last = err; c.stops != "" && asked[len(asked)-1] == c.stops {
					break
				}
			}
			if !slices.Equal(asked, c.want) || !errors.Is(last, c.err) {
				t.Errorf("asked for %q, last error %v", asked, last)
			}
		})
	}
}

func TestMissingAndExistingObjects(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	get := func(context.Context, string, metav1.GetOptions) (*corev1.Pod, error) {
		return &corev1.Pod{}, apierrors.NewNotFound(pods, "x")
	}
	if pod, err := Find(t.Context(), &Retrier{}, get, "Pod", "n", "x"); pod != nil || err != nil {
		t.Errorf("found %v, %v", pod, err)
	}
	if _, err := Get(t.Context(), &Retrier{}, get, "Pod", "n", "x"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	want := &corev1.Pod{}
	create := func(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error) {
		return nil, apierrors.NewAlreadyExists(pods, "x")
	}
	if pod, err := Create(t.Context(), &Retrier{}, "create Pod/n/x", create, want); pod != want || err != nil {
		t.Errorf("created %v, %v", pod, err)
	}
}
