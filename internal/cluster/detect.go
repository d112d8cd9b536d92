package cluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
)

// Detect looks at the cluster behind cfg and, when o.NodeRoot is a
// control-plane node's, at the node. It fails only when the API server's
// version cannot be read or ctx ends.
func Detect(ctx context.Context, cfg *rest.Config, o Options) (*Info, error) {
	return nil, errors.New("detect: unfinished")
}

func readCredentials(root, path string, now time.Time) (*NodeCredentials, error) {
	return nil, errors.New("unfinished")
}
