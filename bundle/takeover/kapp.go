package takeover

const (
	kappPrefix = "kapp:"
	kappLabel  = "kapp.k14s.io/app"
)

func kappApp(_, labels map[string]string) Tool {
	app := labels[kappLabel]
	if app == "" {
		return Tool{}
	}
	return Tool{
		Text: "kapp's app " + app, Token: kappPrefix + app, Manager: "kapp", Labels: []string{kappLabel, "kapp.k14s.io/association"},
		Annotations: []string{"kapp.k14s.io/identity", "kapp.k14s.io/original", "kapp.k14s.io/original-diff-md5"},
	}
}
