// The cluster's name server: CoreDNS, with a plugin that answers for Services and pods from the cluster's API.
//
// CoreDNS' own plugin for this is left out: its version for these libraries of Kubernetes would have all of them built a second time.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	"github.com/miekg/dns"
)

const (
	zone  = "cluster.local."
	token = "/var/run/secrets/kubernetes.io/serviceaccount/"
	pause = time.Second
)

// names is a plugin: addresses by name, read anew from the API each second.
type names struct {
	mutex sync.RWMutex
	known map[string][]string
	// suffixes of known names: they exist, and have no address.
	above map[string]bool
}

func (*names) Name() string { return "names" }

// Ready says whether the API has answered once.
func (n *names) Ready() bool {
	n.mutex.RLock()
	defer n.mutex.RUnlock()
	return n.known != nil
}

func (n *names) ServeDNS(_ context.Context, writer dns.ResponseWriter, request *dns.Msg) (int, error) {
	answer := new(dns.Msg)
	answer.SetReply(request)
	answer.Authoritative = true
	question := request.Question[0]
	name := strings.ToLower(question.Name)
	n.mutex.RLock()
	addresses, found := n.known[name]
	found = found || n.above[name]
	n.mutex.RUnlock()
	if !found {
		// There is no world outside: names of other zones are none.
		answer.Rcode = dns.RcodeNameError
	}
	if question.Qtype == dns.TypeA || question.Qtype == dns.TypeANY {
		for _, address := range addresses {
			header := dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}
			answer.Answer = append(answer.Answer, &dns.A{Hdr: header, A: net.ParseIP(address)})
		}
	}
	return dns.RcodeSuccess, writer.WriteMsg(answer)
}

type object struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		ClusterIP                string
		PublishNotReadyAddresses bool
	}
	AddressType string
	Endpoints   []struct {
		Addresses  []string
		Hostname   string
		Conditions struct{ Ready *bool }
	}
}

func list(client *http.Client, path string) ([]object, error) {
	secret, err := os.ReadFile(token + "token")
	if err != nil {
		return nil, err
	}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest("GET", "https://"+host+path+"?resourceVersion=0", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(secret))
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, answer.Status)
	}
	var found struct{ Items []object }
	err = json.NewDecoder(answer.Body).Decode(&found)
	return found.Items, err
}

// read makes the table anew: a Service's own address, or, of one without, those of its ready pods, each by its host name too.
func (n *names) read(client *http.Client) error {
	services, err := list(client, "/api/v1/services")
	if err != nil {
		return err
	}
	slices, err := list(client, "/apis/discovery.k8s.io/v1/endpointslices")
	if err != nil {
		return err
	}
	known, above := map[string][]string{}, map[string]bool{}
	headless := map[string]bool{}
	add := func(name string, addresses ...string) {
		known[name] = append(known[name], addresses...)
		for parent := name; parent != zone; {
			parent = parent[strings.Index(parent, ".")+1:]
			above[parent] = true
		}
	}
	for _, one := range services {
		name := one.Metadata.Name + "." + one.Metadata.Namespace + ".svc." + zone
		if one.Spec.ClusterIP == "None" {
			headless[name] = true
			add(name)
		} else if one.Spec.ClusterIP != "" {
			add(name, one.Spec.ClusterIP)
		}
	}
	for _, one := range slices {
		name := one.Metadata.Labels["kubernetes.io/service-name"] + "." + one.Metadata.Namespace + ".svc." + zone
		if !headless[name] || one.AddressType != "IPv4" {
			continue
		}
		for _, endpoint := range one.Endpoints {
			// The API calls an address ready where the Service publishes those that are not.
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			add(name, endpoint.Addresses...)
			if endpoint.Hostname != "" {
				add(endpoint.Hostname+"."+name, endpoint.Addresses...)
			}
		}
	}
	n.mutex.Lock()
	n.known, n.above = known, above
	n.mutex.Unlock()
	return nil
}

func (n *names) watch() {
	authority, err := os.ReadFile(token + "ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	for ; ; time.Sleep(pause) {
		if err := n.read(client); err != nil {
			log.Printf("names: %v", err)
		}
	}
}

func main() {
	plugin.Register("names", func(controller *caddy.Controller) error {
		controller.Next()
		table := &names{}
		go table.watch()
		dnsserver.GetConfig(controller).AddPlugin(func(plugin.Handler) plugin.Handler { return table })
		http.HandleFunc("/ready", func(writer http.ResponseWriter, _ *http.Request) {
			if !table.Ready() {
				writer.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		go func() { log.Print(http.ListenAndServe(":8181", nil)) }()
		return nil
	})
	dnsserver.Directives = []string{"health", "errors", "names"}
	coremain.Run()
}
