package inspect

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// fileLayout returns the layout whose scheduler kubeconfig is on this node. The error names the
// paths that could not be checked.
func (d *detector) fileLayout() (Layout, error) {
	if d.o.NodeRoot == "" {
		return Layout{}, nil
	}
	var failed error
	for _, layout := range layouts() {
		if layout.Kubeconfig == "" {
			continue
		}
		found, err := nodeFileExists(d.o.NodeRoot, layout.Kubeconfig)
		if found {
			return layout, nil
		}
		failed = errors.Join(failed, err)
	}
	return Layout{}, failed
}

// node inspects this node.
func (d *detector) node(context.Context) {
	layout, err := d.fileLayout()
	if layout.Name == "" {
		if err != nil {
			d.warn("%v: whether this is a control-plane node is unknown", err)
		}
		return
	}
	d.info.Node.ControlPlane = true
	d.info.Layout = layout.Name
	d.info.Credentials.Kubeconfig = layout.Kubeconfig
	credentials, err := LoadNodeCredentials(d.o.NodeRoot, layout.Kubeconfig)
	if err != nil {
		d.warn("the scheduler's credentials of this node are unusable: %v", err)
		return
	}
	found := &d.info.Credentials
	found.Server, found.User, found.Subject = credentials.Server, credentials.User, credentials.Subject
	found.Groups = append(found.Groups, credentials.Groups...)
	found.Expires = &credentials.Expires
	if err := credentials.check(d.o.Now()); err != nil {
		d.warn("the scheduler's credentials of this node are unusable: %v", err)
		return
	}
	if credentials.OfOtherCluster(d.trusted) {
		found.OtherCluster = true
		d.warn(
			"%s trusts another certificate authority than the current kubeconfig: this node may belong to another cluster "+
				"than %s", layout.Kubeconfig, d.info.Server.URL)
	}
}

// OfOtherCluster reports whether the credentials trust none of the certificate authorities that a
// kubeconfig trusts, a PEM bundle. Without authorities it is unknown.
func (c *NodeCredentials) OfOtherCluster(trusted []byte) bool {
	return len(trusted) > 0 && len(c.CA) > 0 && !shareCertificate(trusted, c.CA)
}

// shareCertificate reports whether two PEM bundles have a common certificate.
func shareCertificate(a, b []byte) bool {
	in := map[string]bool{}
	for _, certificate := range certificates(a) {
		in[string(certificate.Raw)] = true
	}
	for _, certificate := range certificates(b) {
		if in[string(certificate.Raw)] {
			return true
		}
	}
	return false
}

// certificates returns the valid certificates in a PEM bundle.
func certificates(bundle []byte) []*x509.Certificate {
	var list []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, certificate)
		}
	}
	return list
}
