package validate

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules about Services, Ingresses and NetworkPolicies that look at more than one field.

func (v *values) network(value any, at *field.Path) {
	switch o := value.(type) {
	case *corev1.Service:
		v.text(at.Child("metadata", "name"), o.Name, v.serviceName)
	case *corev1.ServiceSpec:
		v.service(at, o)
	case *networkingv1.IngressSpec:
		v.ingress(at, o)
	case *networkingv1.IngressClassSpec:
		v.refuse(validation.IsDomainPrefixedPath(at.Child("controller"), o.Controller)...)
	case *networkingv1.IngressBackend:
		v.ingressBackend(at, o)
	case *networkingv1.NetworkPolicyPort:
		v.policyPort(at, o)
	case *networkingv1.NetworkPolicyPeer:
		v.refuseIf((o.PodSelector != nil || o.NamespaceSelector != nil) == (o.IPBlock != nil), field.Invalid(at, "", "must have selectors or an ipBlock, and not both"))
	case *networkingv1.IPBlock:
		v.ipBlock(at, o)
	}
}

func (v *values) service(at *field.Path, s *corev1.ServiceSpec) {
	headless := s.ClusterIP == corev1.ClusterIPNone
	switch {
	case s.Type == corev1.ServiceTypeExternalName:
		v.needs(at.Child("externalName"), strings.TrimSuffix(s.ExternalName, "."), validation.IsDNS1123Subdomain)
	case len(s.Ports) == 0 && !headless:
		v.refuse(field.Required(at.Child("ports"), ""))
	case headless && s.Type != "" && s.Type != corev1.ServiceTypeClusterIP:
		v.must(at.Child("clusterIP"), s.ClusterIP, "may not be None for a Service of type "+string(s.Type))
	}
	if s.ClusterIP != "" && !headless {
		v.ip(at.Child("clusterIP"), s.ClusterIP)
	}
	names, nodePorts := map[string]bool{}, map[string]bool{}
	for i, p := range s.Ports {
		here := at.Child("ports").Index(i)
		v.refuseIf(p.Name == "" && len(s.Ports) > 1, field.Required(here.Child("name"), "where there are several ports"))
		v.unique(names, here.Child("name"), p.Name)
		if p.TargetPort.String() != "0" && p.TargetPort.String() != "" {
			v.portOrName(here.Child("targetPort"), p.TargetPort)
		}
		if p.NodePort != 0 {
			v.unique(nodePorts, here.Child("nodePort"), fmt.Sprintf("%d %s", p.NodePort, p.Protocol))
			v.refuseIf(s.Type == "" || s.Type == corev1.ServiceTypeClusterIP, field.Forbidden(here.Child("nodePort"), "not for a Service of type ClusterIP"))
		}
	}
	for i, ip := range s.ExternalIPs {
		v.ip(at.Child("externalIPs").Index(i), ip)
		a, err := netip.ParseAddr(ip)
		v.refuseIf(err == nil && (a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast()),
			field.Invalid(at.Child("externalIPs").Index(i), ip, "must not be a loopback, link-local or unspecified address"))
	}
	v.refuseIf(len(s.LoadBalancerSourceRanges) > 0 && s.Type != corev1.ServiceTypeLoadBalancer, field.Forbidden(at.Child("loadBalancerSourceRanges"), "only for a Service of type LoadBalancer"))
	for i, cidr := range s.LoadBalancerSourceRanges {
		v.cidr(at.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(cidr))
	}
	v.refuseIf(s.SessionAffinityConfig != nil && s.SessionAffinity != corev1.ServiceAffinityClientIP, field.Forbidden(at.Child("sessionAffinityConfig"), "only for sessionAffinity: ClientIP"))
}

func (v *values) ingress(at *field.Path, s *networkingv1.IngressSpec) {
	v.refuseIf(len(s.Rules) == 0 && s.DefaultBackend == nil, field.Invalid(at, "", "must have rules or a defaultBackend"))
	for i, r := range s.Rules {
		here := at.Child("rules").Index(i)
		if v.text(here.Child("host"), r.Host, hostName); r.HTTP == nil {
			continue
		}
		_, err := netip.ParseAddr(r.Host)
		v.refuseIf(err == nil, field.Invalid(here.Child("host"), r.Host, "must be a DNS name, not an IP address"))
		here = here.Child("http", "paths")
		v.refuseIf(len(r.HTTP.Paths) == 0, field.Required(here, ""))
		for j, p := range r.HTTP.Paths {
			strict := p.PathType != nil && *p.PathType != networkingv1.PathTypeImplementationSpecific
			here := here.Index(j).Child("path")
			v.refuseIf(!strings.HasPrefix(p.Path, "/") && (strict || p.Path != ""), field.Invalid(here, p.Path, "must be an absolute path"))
			for _, wrong := range []string{"//", "/./", "/../", "%2f", "%2F"} {
				v.refuseIf(strict && strings.Contains(p.Path, wrong), field.Invalid(here, p.Path, "must not contain "+wrong))
			}
		}
	}
	for i, tls := range s.TLS {
		for j, name := range tls.Hosts {
			v.text(at.Child("tls").Index(i).Child("hosts").Index(j), name, hostName)
		}
	}
}

func hostName(name string) []string {
	if strings.Contains(name, "*") {
		return validation.IsWildcardDNS1123Subdomain(name)
	}
	return validation.IsDNS1123Subdomain(name)
}

func (v *values) ingressBackend(at *field.Path, b *networkingv1.IngressBackend) {
	if b.Service == nil {
		return
	}
	v.needs(at.Child("service", "name"), b.Service.Name, v.serviceName)
	port := b.Service.Port
	here := at.Child("service", "port")
	switch {
	case port.Name != "" && port.Number != 0:
		v.must(here, "", "cannot set both name and number")
	case port.Name != "":
		v.must(here.Child("name"), port.Name, validation.IsValidPortName(port.Name)...)
	case port.Number != 0:
		v.number(here.Child("number"), int64(port.Number), 1, highPort)
	default:
		v.refuse(field.Required(here, "name or number"))
	}
}

func (v *values) policyPort(at *field.Path, p *networkingv1.NetworkPolicyPort) {
	if p.EndPort == nil {
		return
	}
	if p.Port == nil || p.Port.Type != intstr.Int {
		v.must(at.Child("endPort"), *p.EndPort, "only where port is a number")
		return
	}
	v.number(at.Child("endPort"), int64(*p.EndPort), int64(p.Port.IntVal), highPort)
}

func (v *values) ipBlock(at *field.Path, b *networkingv1.IPBlock) {
	if b.CIDR == "" {
		v.refuse(field.Required(at.Child("cidr"), ""))
		return
	}
	v.cidr(at.Child("cidr"), b.CIDR)
	outer, wrong := netip.ParsePrefix(b.CIDR)
	for i, except := range b.Except {
		v.cidr(at.Child("except").Index(i), except)
		inner, err := netip.ParsePrefix(except)
		v.refuseIf(wrong == nil && err == nil && (!outer.Contains(inner.Addr()) || outer.Bits() >= inner.Bits()), field.Invalid(at.Child("except").Index(i), except, "must be a part of cidr"))
	}
}

func (v *values) serviceName(name string) []string {
	if v.minor >= relaxedSince {
		return validation.IsDNS1123Label(name)
	}
	return validation.IsDNS1035Label(name)
}

func (v *values) ip(at *field.Path, ip string) {
	v.refuse(validation.IsValidIPForLegacyField(at, ip, v.minor >= strictSince, nil)...)
}

func (v *values) cidr(at *field.Path, cidr string) {
	v.refuse(validation.IsValidCIDRForLegacyField(at, cidr, v.minor >= strictSince, nil)...)
}
