package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
)

const (
	// transactionSize limits the keys that one transaction deletes; etcd accepts 128.
	transactionSize = 100
	// definitions is the key prefix for custom resource definitions; PLURAL.GROUP follows.
	definitions = registry + "apiextensions.k8s.io/customresourcedefinitions/"
	apiServices = registry + "apiregistration.k8s.io/apiservices/"
	// resetTime is the time limit for the API server to see the deletions in etcd.
	resetTime = time.Minute
)

// Reset removes all objects that were created after a revision, including objects that wait for a
// finalizer, since no controller would remove the finalizer. It removes them in etcd, so that the
// API server need not be started again. Objects that the API server creates for itself stay. When
// Reset returns, the API server has seen that nodes and pods are gone, and no longer serves the
// removed custom resources' groups.
func (s *Server) Reset(ctx context.Context, revision int64) error {
	var created rangeAnswer
	err := s.AskEtcd(ctx, "kv/range", map[string]any{
		"key": encode(registry), "range_end": encode(registryEnd), "min_create_revision": strconv.FormatInt(revision+1,
			10), "keys_only": true,
	}, &created)
	if err != nil {
		return err
	}
	var objects, services []any
	groups := map[string]bool{} // of removed definitions
	for _, kv := range created.KVs {
		key := string(kv.Key)
		deletion := map[string]any{"requestDeleteRange": map[string]any{"key": encode(key)}}
		switch {
		case isBootstrapped(key):
		case strings.HasPrefix(key, apiServices):
			services = append(services, deletion)
		default:
			objects = append(objects, deletion)
			if definition, ok := strings.CutPrefix(key, definitions); ok {
				_, group, _ := strings.Cut(definition, ".")
				groups[group] = true
			}
		}
	}
	if len(objects)+len(services) == 0 {
		return nil
	}
	// The API server removes the APIService for a definition that is gone, and would create it again
	// if that was gone first.
	if err := s.deleteKeys(ctx, objects); err != nil {
		return err
	}
	if err := s.awaitReset(ctx, groups); err != nil {
		return err
	}
	return s.deleteKeys(ctx, services)
}

func (s *Server) deleteKeys(ctx context.Context, deletions []any) error {
	for chunk := range slices.Chunk(deletions, transactionSize) {
		if err := s.AskEtcd(ctx, "kv/txn", map[string]any{"success": chunk}, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// awaitReset waits until the API server has seen the deletions: its watch cache and the groups that
// it serves follow etcd. A client that discovers a group which is gone a moment later gets 404 for
// its resources.
func (s *Server) awaitReset(ctx context.Context, groups map[string]bool) error {
	kube, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		return fmt.Errorf("make client for the API server: %w", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, resetTime,
		fmt.Errorf("the API server had not seen it after %s", resetTime))
	defer cancel()
	for {
		left, err := leftAfterReset(limited, kube, groups)
		if err == nil && left == "" {
			return nil
		}
		if clock.Sleep(limited, pollInterval) != nil {
			return fmt.Errorf("wait for removed objects: %w",
				errors.Join(context.Cause(limited), err, errors.New(cmp.Or(left, "unknown")+" left")))
		}
	}
}

// leftAfterReset returns an object kind or a group that the API server still has in its watch cache
// or serves, or "" if nothing is left.
func leftAfterReset(ctx context.Context, kube kubernetes.Interface, groups map[string]bool) (string, error) {
	cached := metav1.ListOptions{ResourceVersion: "0", Limit: 1}
	nodes, err := kube.CoreV1().Nodes().List(ctx, cached)
	if err != nil || len(nodes.Items) > 0 {
		return "nodes", err
	}
	pods, err := kube.CoreV1().Pods("").List(ctx, cached)
	if err != nil || len(pods.Items) > 0 {
		return "pods", err
	}
	var served metav1.APIGroupList
	if err := kube.Discovery().RESTClient().Get().AbsPath("/apis").Do(ctx).Into(&served); err != nil {
		return "groups", err
	}
	for _, g := range served.Groups {
		if groups[g.Name] && !scheme.Scheme.IsGroupRegistered(g.Name) {
			return "group " + g.Name, nil
		}
	}
	return "", nil
}

// isBootstrapped reports whether the API server creates an object for itself, which it may do after
// it is ready.
func isBootstrapped(key string) bool {
	if name, ok := strings.CutPrefix(key, registry+"namespaces/"); ok {
		return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, name)
	}
	return key == registry+"configmaps/kube-system/extension-apiserver-authentication"
}
