# Functions that unpack packages of a Debian suite into a folder and run their programs. Source this file.
#
# They change nothing outside the folder: apt uses package lists in the folder, and packages are unpacked but not
# installed. Exit code 77 means that this is impossible on this machine. The last line of the output gives the reason.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

without() {
    echo "$*" >&2
    exit 77
}

# Print the mirror that this machine's apt uses. The mirror has all suites.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null |
        head -n 1
}

configure_apt() { # suite, folder, its mirror
    mkdir -p "$2"/{lists,archives}/partial "$2/none"
    : >"$2/status"
    echo "deb [signed-by=$KEYRING] $3 $1 main" >"$2/sources.list"
    cat >"$2/apt.conf" <<END
Dir::State "$2";
Dir::State::lists "$2/lists";
Dir::State::status "$2/status";
Dir::Cache "$2";
Dir::Cache::archives "$2/archives";
Dir::Etc::sourcelist "$2/sources.list";
Dir::Etc::sourceparts "$2/none";
Dir::Etc::preferences "$2/none/preferences";
Dir::Etc::preferencesparts "$2/none";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
APT::Sandbox::User "";
APT::Install-Recommends "false";
END
}

# Download the packages and all that they depend on. Unpack them into the root.
unpack() { # what they are, root, suite, packages
    local what="$1 of $3" root="$2" suite="$3" uri package apt
    shift 3
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || without "$what: this is no Debian"
    [ -r "$KEYRING" ] || without "$what: the keyring of Debian's archive is not installed"
    uri="$(mirror)" || true # an apt that fails knows none
    [ -n "$uri" ] || without "$what: apt knows no mirror of Debian's archive here"
    apt="$root/apt"
    configure_apt "$suite" "$apt" "$uri"
    {
        APT_CONFIG="$apt/apt.conf" apt-get update -qq &&
            APT_CONFIG="$apt/apt.conf" apt-get install -y -qq --download-only "$@"
    } >"$apt/log" 2>&1 ||
        without "$what: apt cannot download it: $(tail -n 1 "$apt/log")"
    for package in "$apt"/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar --extract --directory "$root" --no-same-owner \
            --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale
    done
    rm -rf "$apt"
}

# Print the dynamic loader in a root. The C library is in the same folder.
#
# The loader starts a program of the root on this machine's file system: LOADER --library-path FOLDERS PROGRAM.
# That takes no mount and no privilege. It suits a program that finds its files by options or beside itself.
loader() { # root
    local -a found=("$1"/usr/lib/*-linux-gnu*/ld-linux*.so.*)
    [ -x "${found[0]}" ] || without "the packages in $1 have no dynamic loader that is known here"
    echo "${found[0]}"
}
