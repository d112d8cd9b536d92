package readonly

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
)

// Listen listens on loopback and writes a kubeconfig for it. Kubernetes clients send tokens over
// TLS only.
func Listen(kubeconfig, token string) (net.Listener, error) {
	begin := time.Now().Add(-time.Hour)
	template := x509.Certificate{
		Subject: pkix.Name{CommonName: "pmk-sched-proxy"}, NotBefore: begin, NotAfter: begin.AddDate(10, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	pair, err := certificates.NewAuthority(template)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate of the proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the scheduler: %w", err)
	}
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"proxy": {Server: "https://" + listener.Addr().String(),
			CertificateAuthorityData: pair.Cert}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"proxy": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy", AuthInfo: "proxy"}},
		CurrentContext: "proxy",
	}, kubeconfig)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write kubeconfig of the scheduler: %w", err), listener.Close())
	}
	return tls.NewListener(listener,
		&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}), nil
}
