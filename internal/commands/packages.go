package commands

const installs = "fetches packages and runs code that they bring; what it only lists may still ask a server"

// packageTools are commands that fetch and install packages.
var packageTools = []*Command{
	{
		Names: "apt apt-get aptitude apk dnf dnf5 yum microdnf tdnf zypper pacman yay paru emerge xbps-install eopkg swupd brew port opkg pkg pkg_add snap flatpak guix " +
			"apt-add-repository add-apt-repository apt-key nix nix-env nix-shell nix-build nix-channel debootstrap alien checkinstall slackpkg needrestart",
		Class: Network, Check: checkInstall, Why: installs, Example: "apt-get install -y tree",
	},
	{Names: "dpkg dpkg-deb dpkg-reconfigure rpm rpmbuild gdebi", Class: Network, Rest: Read, Facts: Install, Check: checkDpkg, Why: "runs the scripts of packages; a list of dpkg is local when it goes to no terminal's pager"},
	{Names: "dpkg-query", Class: Network, Rest: Data, Why: "runs a pager for its lists on a terminal"},
	{Names: "apt-cache apt-mark apt-config", Class: Network, Rest: Data, Why: "runs hooks that its configuration names"},
	{
		Names: "pip# pipx uv uvx poetry pdm hatch rye pipenv conda mamba micromamba easy_install# twine flit virtualenv pyenv",
		Class: Network, Check: checkInstall, Facts: Runtime, Why: installs, Example: "pip install requests",
	},
	{
		Names: "npm npx yarn pnpm pnpx cnpm bunx corepack nvm fnm volta bower lerna nx turbo degit create-react-app",
		Class: Network, Check: checkInstall, Facts: Runtime, Why: installs, Example: "npm install",
	},
	{Names: "gem bundle bundler rbenv rvm pod fastlane", Class: Network, Check: checkInstall, Facts: Runtime, Why: installs, Example: "gem install rake"},
	{Names: "cargo rustup rustup-init cargo-binstall", Class: Network, Check: checkInstall, Facts: Runtime, Why: "builds and runs code, and fetches packages", Example: "cargo add serde"},
	{Names: "go gotip", Class: Network, Check: checkInstall, Facts: Runtime, Why: "builds and runs code, and fetches modules and tool chains", Example: "go install example.com/tool@latest"},
	{
		Names: "composer pear pecl cpan cpanm cpanplus luarocks opam stack cabal ghcup mix hex rebar3 pub flutter dart dotnet nuget vcpkg conan spack raco " +
			"asdf mise sdk jbang coursier cs lein clj boot swift tlmgr ctan helmfile krew ansible-galaxy steampipe",
		Class: Network, Check: checkInstall, Facts: Runtime, Why: installs,
	},
}

// checkInstall notes that something is installed, by the subcommand or its option.
func checkInstall(c *Call) {
	for _, w := range c.Words {
		if Listed("install i add get ci update upgrade dist-upgrade full-upgrade sync require reinstall download tool run exec create in -S -Sy -Syu -i -U --add", w.Text) {
			c.Flags |= Install
			return
		}
	}
	if Listed("npx uvx pnpx bunx easy_install debootstrap", c.Name) || len(c.Words) == 0 {
		c.Flags |= Install
	}
}

// checkDpkg tells the uses of dpkg that only read its database and never use a pager.
func checkDpkg(c *Call) {
	if c.Name != "dpkg" || len(c.Words) == 0 {
		return
	}
	switch c.Words[0].Text {
	case "--print-architecture", "--print-foreign-architectures", "--version":
		if len(c.Words) == 1 && c.Words[0].Fixed {
			c.Become(Local)
		}
	}
}
