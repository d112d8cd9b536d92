package cluster

import "time"

// NodeCredentials is the default scheduler's kubeconfig of a node, with the
// files it refers to read in. Printing or marshalling it never shows the key.
type NodeCredentials struct {
	// Path of the kubeconfig as the node sees it.
	Path string
	// Raw is the kubeconfig as it stands in the file. It may hold the key.
	Raw []byte
	// Server is the API server's address, often https://localhost:…: then it
	// works only on the host network of the node.
	Server string
	// User and Groups are whom the API server takes the holder for: common
	// name and organisations of the certificate.
	User   string
	Groups []string
	// Subject and Expires are of the client certificate.
	Subject string
	Expires time.Time
	// CA, Cert and Key are PEM. CA is empty where the kubeconfig names none.
	CA, Cert, Key []byte
}

// ReadNodeCredentials reads the kubeconfig at path, as the node sees it, below
// nodeRoot (empty means "/"). Certificates and keys that the kubeconfig refers
// to by file are read too, below the same root. It is an *Error with a hint
// when the file cannot be read, has no client certificate with its key, or when
// the certificate has expired.
func ReadNodeCredentials(nodeRoot, path string) (*NodeCredentials, error) {
	return readCredentials(nodeRoot, path, time.Now())
}
