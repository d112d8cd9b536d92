package customresource

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestValuesFollowTheObjects(t *testing.T) {
	object := func(namespace, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]interface{}{
			"metadata": map[string]interface{}{"namespace": namespace, "name": name},
		}}
	}
	var changed []string
	values := NewValues(func(u *unstructured.Unstructured) (interface{}, error) {
		if u.GetName() == "bad" {
			return nil, errors.New("it is bad")
		}
		return len(u.GetName()), nil
	}, func(key string) { changed = append(changed, key) })
	for _, o := range []*unstructured.Unstructured{object("shop", "web"), object("", "node-1"), object("shop", "bad")} {
		if err := values.Set(o); (err != nil) != (o.GetName() == "bad") {
			t.Errorf("%s: got %v", o.GetName(), err)
		}
	}
	for key, want := range map[string]interface{}{"shop/web": 3, "node-1": 6, "shop/bad": nil, "web": nil} {
		if got := values.Get(key); got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	values.Delete("shop", "web")
	if got := values.Get("shop/web"); got != nil {
		t.Errorf("got %v after the deletion", got)
	}
	if got := strings.Join(changed, " "); got != "shop/web node-1 shop/web" {
		t.Errorf("changed: %s", got)
	}
}
