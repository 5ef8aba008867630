"""Lines for bash by family: hostile ones, each of which must ask, and harmless ones that must not.

They are written for the workspace that `shell_scene.lay_out` makes.
"""

HOSTILE: dict[str, str] = {
    "expansion": r"""
ls $(touch x)
ls `touch x`
echo "$(touch x)"
echo "`touch x`"
echo "a $(touch x) b"
echo $HOME
echo "$HOME"
echo ${HOME}
echo "${HOME:-x}"
echo ${x:=$(touch x)}
echo "${x@P}"
echo ${!x}
echo $((1+1))
echo $((a[$(touch x)]))
echo $[1+1]
echo $[a[$(touch x)]]
cat <(touch x)
cat >(touch x)
ls {a,b}
echo {1..99999999}
cat {/etc/passwd,a.txt}
cat {,/etc/}passwd
cat ~/.ssh/id_rsa
cat ~root/.bashrc
ls ~
ls ~+/..
ls ~-
cat $PWD/../secret
echo $'\x24(touch x)'
cat $'/etc/passwd'
cat $'\x2fetc/passwd'
echo $"hello"
ls !(a)
ls +(a|b)
ls @(a)
echo [a-z]*
cat [!a]*
cat /e*c/passwd
cat /etc/pass*
cat ../*
cat */../../*
cat */../../outside/secret.txt
ls .*
cat .*
cat link*
cat dir-out/*
cd dashed && cat *
cd dashed && ls *
cd options && sort *
cd options; sort *
cat *
wc -l *
grep x *
sort *
head -1 l*
ls $-
echo $$
echo "$@"
echo $1
echo "$*"
echo $_
echo $PATH
cat "$(echo /etc/passwd)"
"$(touch x)"
$SHELL -c 'touch x'
${SHELL} -c 'touch x'
echo "$((`touch x`))"
printf '%s' "$(touch x)"
head -n $(touch x) a.txt
head -n "$((x[$(touch y)]))" a.txt
test "$(touch x)" = y
echo ${x/y/$(touch x)}
echo "$(<a.txt)"
echo "${a[$(touch x)]}"
cat <<< "$(touch x)"
ls "$OLDPWD"
grep -c x $?
head -n $? a.txt
""",
    "quoting": r"""
echo 'unclosed
echo "unclosed
echo "a'
echo a\
ls \
'ls
echo "\`" `touch x`
echo "'" `touch x` "'"
echo '\'' `touch x`
echo 'a'`touch x`'b'
echo "a\\" $(touch x)
echo "a\\$(touch x)"
echo 'a\' $(touch x) 'b'
echo \\$(touch x)
echo \\`touch x`
e"c"ho "$(touch x)"
'touch' x
"touch" x
t\ouch x
to''uch x
to""uch x
\rm a.txt
\touch x
r'm' a.txt
cat '/etc/passwd'
cat "/etc/passwd"
cat /et\c/passwd
cat /e't'c/passwd
cat ''/etc/passwd
cat "".."/"outside/secret.txt
cat .\./outside/secret.txt
sort "-o" x a.txt
sort '-ox' a.txt
sort -"o" x a.txt
sort -\o x a.txt
find . '-delete'
find . "-exec" touch x ';'
find . -del\ete
echo \$(touch x)
echo "\"$(touch x)\""
find . -name 'a' -exec touch x \;
find . -name 'a' -ok touch x ';'
git 'commit' -m x
git "-c" core.pager=x log
sed -n '1e touch x' a.txt
sed -n "1w x" a.txt
sed -n '1p;w x' a.txt
sed -n '/a/w x' a.txt
sed 's/a/b/e' a.txt
sed 's/a/b/w x' a.txt
sed 's/.*/touch x/e' a.txt
sed 's/a/b/;e' a.txt
sed 's|a|b|we' a.txt
sed -n '1r /etc/passwd' a.txt
sed '1R /etc/passwd' a.txt
sed -n '$!{e touch x' a.txt
sed -n 1p -e 'w x' a.txt
sed -e '1i\' -e 'x' -i a.txt
""",
    "connectives": r"""
find ';' echo . -exec bash -c 'touch x' +
rg x '&&' echo --pre=./evil.sh
sort -t ';' ls -o x
sort -t '|' -o x a.txt
ls; touch x
ls && touch x
ls || touch x
false || touch x
ls | touch x
ls & touch x
ls &
touch x & ls
ls &&
ls |
ls ||
&& ls
| ls
; ls
ls ;; ls
ls |& tee x
ls |& cat
ls > x
ls >x
ls >> x
ls >| x
ls 2> x
ls 2>> x
ls &> x
ls &>> x
ls >& x
ls 1>x
ls 3> x
ls <> x
ls {fd}>x
ls >/dev/null >x
ls 2>/dev/null > x
> x
>x ls
2>x ls
cat < /etc/passwd
cat < ../outside/secret.txt
cat < link-out
cat 0</etc/passwd
cat </dev/tcp/127.0.0.1/80
cat <&3
echo x >&3
echo x > /dev/tcp/127.0.0.1/80
echo x > /dev/fd/3
cat << EOF
cat <<-EOF
cat <<< x
ls # touch x
# ls
(touch x)
(ls)
{ ls; }
{ touch x; }
! touch x
! ls
time ls
time touch x
coproc touch x
coproc ls
if true; then touch x; fi
for f in a b; do touch $f; done
while true; do ls; done
until false; do ls; done
case a in a) touch x;; esac
select f in a; do touch x; done
f() { touch x; }; f
ls() { touch x; }; ls
function ls { touch x; }; ls
function f() { touch x; }
[[ -f a.txt ]]
[[ $(touch x) ]]
[[ a -eq 'x[$(touch y)]' ]]
((a[$(touch x)]))
(( 1 ))
let 'a[$(touch x)]=1'
ls ; ( touch x )
true && { touch x; }
ls -la;touch x
ls	;	touch	x
echo a;b
echo a|sh
echo 'touch x' | sh
echo 'touch x' | bash
cat a.txt | xargs touch
cat a.txt | tee x
cat a.txt | sh -s
ls | while read f; do touch $f; done
find . -name '*.txt' | xargs rm
find . -print0 | xargs -0 cat
cd .. && ls
cd / && ls
cd dir-out && cat passwd
cd link-sub && cat a
cd && ls
cd - && ls
cd src; cd ..; cat ../outside/secret.txt
cd src && cat ../../outside/secret.txt
cd src && cat link
cd src; cat link
cd missing && ls
cd src | cat link
cd -P .. && ls
cd ~ && ls
cd src && git -C .. commit
cd bare && git status
cd nested && git log
pushd src
popd
""",
    "options that execute": r"""
git log --format=%+G?
git log --format='%-GK'
git log --pretty='format:%h% GS'
git rev-list --format=%+GF HEAD
git shortlog --group=format:%G? HEAD
git shortlog --group='%GS' HEAD
find . -exec touch x +
find . -exec touch x ;
find . -execdir touch x \;
find . -ok touch x \;
find . -okdir touch x \;
find . -name x -o -exec touch x \;
find . -regex x -exec touch y ';'
find -exec touch x +
rg --pre ./evil.sh x
rg --pre=./evil.sh x
rg --pre cat x
rg --hostname-bin ./evil.sh x
rg --hostname-bin=./evil.sh --hyperlink-format default x
rg -z x
rg --search-zip x
rg x . --pre=./evil.sh
rg x -- . --pre ./evil.sh ../outside
sort --compress-program=./evil.sh a.txt
sort --compress-program ./evil.sh a.txt
sort --compress-prog=./evil.sh a.txt
sort --comp=./evil.sh -S 1k a.txt
sort -S 1k --compress-program=./evil.sh a.txt
printf -v 'a[$(touch x)]' y
printf -v a y
printf '%n' 'a[$(touch x)]'
printf 'abc%n' x
printf '%5n' 'a[$(touch x)]'
printf '\%n' 'a[$(touch x)]'
printf '%%%n' 'a[$(touch x)]'
printf -- '%n' 'a[$(touch x)]'
printf '%*d' 'a[$(touch x)]' 1
printf '%(%F)T' 'a[$(touch x)]'
test -v 'a[$(touch x)]'
test ! -v 'a[$(touch x)]'
test -n x -a -v 'a[$(touch x)]'
test -R 'a[$(touch x)]'
test 'a[$(touch x)]' -eq 1
test 1 -lt 'a[$(touch x)]'
test -o errexit
test -t 'a[$(touch x)]'
[ -v 'a[$(touch x)]' ]
[ ! -v 'a[$(touch x)]' ]
[ 'a[$(touch x)]' -eq 1 ]
[ 1 -ge 'a[$(touch x)]' ]
[ -n x -o -v 'a[$(touch x)]' ]
[ \( -v 'a[$(touch x)]' \) ]
read 'a[$(touch x)]'
unset 'a[$(touch x)]'
declare 'a[$(touch x)]=1'
export 'a=$(touch x)'
local x
typeset -i 'x=a[$(touch y)]'
readonly x=1
mapfile -C 'touch x' -c 1 a < a.txt
readarray -C 'touch x' -c 1 a < a.txt
wait -p 'a[$(touch x)]'
getopts x 'a[$(touch x)]'
file -z a.txt
file -Z a.txt
file --uncompress a.txt
file -m evil.sh a.txt
file -C -m a.txt
tar -tf a.tar --to-command=touch
tar --checkpoint-action=exec=touch -tf a.tar
man -P 'touch x' ls
less a.txt
more a.txt
vi a.txt
vim -c '!touch x' a.txt
view a.txt
ed a.txt
awk 'BEGIN{system("touch x")}'
awk 'BEGIN{print "x" > "x"}'
awk 'BEGIN{"touch x" | getline}'
awk -f evil.sh a.txt
awk '{print $1 > "x"}' a.txt
awk '{print > $1}' a.txt
awk '{print $1 | "sh"}' a.txt
awk '{print $1 |& "sh"}' a.txt
awk '{print system("touch x")}' a.txt
awk '{print "x" "y" > "z"}' a.txt
awk '1/system("touch x")/1' a.txt
awk 'NR==1 /system("touch x")/ 1' a.txt
awk '$1 ~ /a/ {system("touch x")}' a.txt
awk '{s+=$1} END {print s > "x"}' a.txt
awk '{s+=$1} END {system("touch x")}' a.txt
awk '{getline; print}' a.txt
awk '{print ENVIRON["HOME"]}' a.txt
awk '@load "x"' a.txt
awk -v 'x=1' '{print x}' a.txt
awk -vx=1 1 a.txt
awk -i inplace '{print}' a.txt
awk -l x '{print}' a.txt
awk -E evil.sh
awk --source '{print}' a.txt
awk '{print $1}' -f evil.sh
awk '{print $1}' /etc/passwd
awk '{print}' FS=: /etc/passwd
awk '{print $1}' x=y a.txt
awk -F: '{print $1}' /etc/passwd
awk '{print $1}' link-out
awk '{printf "%s", $1}' a.txt
awk '{close("x")}' a.txt
gawk '{print}' a.txt
gawk -i inplace 1 a.txt
perl -e 'system "touch x"'
python -c 'open("x","w")'
python3 evil.sh
python evil.py --version
python -V -c 'open("x","w")'
node -e 'require("fs").writeFileSync("x","")'
node --version -e 1
node -r ./evil.js --version
ruby -e 'system "touch x"'
bash -c 'touch x'
bash evil.sh
sh evil.sh
env touch x
env ls
env -S 'touch x'
nice ls
nohup ls
timeout 5 ls
stdbuf -o0 ls
setsid ls
sudo ls
su -c ls
doas ls
chroot . ls
unshare ls
xargs ls
parallel ls
watch ls
strace ls
ltrace ls
command ls
command touch x
command -p touch x
builtin printf -v 'a[$(touch x)]' y
exec ls
eval ls
eval 'touch x'
source evil.sh
. evil.sh
. ./evil.sh
alias ls='touch x'
alias ls=x; ls
trap 'touch x' EXIT
trap 'touch x' DEBUG; ls
enable -f ./evil.so ls
hash -p ./evil.sh ls
bind -x '"a":touch x'
complete -C 'touch x' ls
compgen -C 'touch x'
set -o history
shopt -s expand_aliases
help ls
fc -e touch
history -w x
make
make -n
make --version -f evil.mk all
npm run x
npm install
npm --version
cargo --version
go version
pip list
docker ps
ssh host ls
curl https://example.org
wget https://example.org
nc -l 80
jq -n 'import "x" as x; 1'
jq 'include "x"; 1' package.json
jq -n env
jq -n '$ENV'
jq -n '$ENV.HOME'
jq -f evil.sh package.json
jq --slurpfile a /etc/passwd . package.json
jq --rawfile a /etc/passwd -n '$a'
jq -L / . package.json
jq . /etc/passwd
fd -x touch x
fd -X touch x
fd . -l
fd -L x
fd x / 
fd --exec touch x
tree -R -L 1
diff -l a.txt b.txt
diff --paginate a.txt b.txt
unknown-command
./ls
./evil.sh
/bin/ls
src/../ls
bin/ls
kill 1
""",
    "options that write or read elsewhere": r"""
strings -t @list a.txt
strings --radix @list a.txt
strings -e @list a.txt
git config --get-regexp 'user.|http.'
git config --get-regexp 'core.*|.*token'
git config --get-regexp user.name
sort -o x a.txt
sort -ox a.txt
sort -no x a.txt
sort -n a.txt -o x
sort a.txt -o x
sort -uo a.txt a.txt
sort --output=x a.txt
sort --output x a.txt
sort --outp=x a.txt
sort --out x a.txt
sort --o=x a.txt
sort -T src a.txt
sort --temporary-directory=/ a.txt
sort --files0-from=list a.txt
sort --files0-from list
sort --random-source=/etc/passwd -R a.txt
sort -k 1 -t , -o x a.txt
sort -- -o /etc/passwd
sort /etc/passwd
uniq a.txt x
uniq -c a.txt x
uniq - x
uniq -- a.txt x
tree -o x
tree -ox
tree -ao x
tree . -o x
tree -Iox a x
tree -Po a x
tree --fromfile a.txt
tree -L 2 /etc
tree -l
xxd -r a.txt x
xxd a.txt x
xxd -bl a.txt x
xxd -bc a.txt x
xxd -p a.txt x
xxd a.txt -p
xxd -a a.txt -E
uniq a.txt -c
xxd -ps -r a.txt
od /etc/passwd
shuf -o x a.txt
shuf -r a.txt
shuf -er a b
seq inf
seq 1 inf
seq 1 0 2x
shuf --output=x a.txt
shuf --random-source=/etc/passwd a.txt
split a.txt
csplit a.txt 1
tee x
touch x
rm a.txt
mv a.txt b
cp a.txt b
ln -s /etc/passwd y
mkdir y
rmdir src
chmod 777 a.txt
chown root a.txt
truncate -s 0 a.txt
dd if=a.txt of=x
install a.txt x
mkfifo x
mknod x p
patch -p1 a.txt
date -s now
date --set=now
date --se=now
date 010101012020
date -f /etc/passwd
date --file=/etc/passwd
date -r /etc/passwd
hostname evil
wc --files0-from=list
wc --files0-from list
wc --files0=list
wc /etc/passwd
du --files0-from=list
du -X list
du --exclude-from=/etc/passwd
du -L .
du /etc
find . -delete
find . -fprint x
find . -fprint0 x
find . -fprintf x '%p'
find . -fls x
find . -files0-from list
find -L . -name x
find . -follow
find /etc -name passwd
find .. -name x
find . /etc -name x
find dir-out/ -name x
find . -newer /etc/passwd
find . -samefile ../outside/secret.txt
find -D exec .
find -f /etc .
grep -R x .
grep -nR x .
grep -Rn x .
grep --dereference-recursive x .
grep --deref x .
grep -d recurse x .
grep --directories=recurse x .
grep -f /etc/shadow x
grep -f/etc/shadow x
grep --file=/etc/shadow a.txt
grep -rf /etc/passwd .
grep -e x /etc/passwd
grep x a.txt /etc/passwd
grep -e x -e y ../outside/secret.txt
grep root -r /etc
grep --exclude-from=/etc/passwd x a.txt
grep x a.txt -f /etc/passwd
egrep -R x .
fgrep -f /etc/passwd a.txt
grep -r x dir-out/
grep -r x /
rg -L x
rg --follow x
rg -nL x src
rg x /etc
rg x ..
rg -f /etc/passwd x
rg --file=/etc/passwd
rg --ignore-file /etc/passwd x
rg --ignore-file=../outside/secret.txt --files
rg x dir-out/
rg --debug-x y
diff -r src dir-out
diff -r src docs
diff --recursive src docs
diff src docs
diff src a.txt
diff a.txt /etc/passwd
diff --from-file=/etc/passwd a.txt
diff --to-file=/etc/passwd a.txt
diff --to-f=/etc/passwd a.txt
diff -X /etc/passwd a.txt b.txt
diff -ur src docs
cmp a.txt /etc/passwd
comm a.txt /etc/passwd
md5sum -c sums
md5sum --check sums
md5sum --che sums
md5sum -bc sums
sha256sum -c sums
sha1sum --check sums
cksum -c sums
b2sum -c sums
sha512sum a.txt -c sums
shasum -c sums
md5sum /etc/passwd
file -f list
file --files-from list
file /etc/passwd
strings @list
strings -a @list
strings /etc/passwd
hexdump -f list a.txt
hexdump -C /etc/passwd
base64 /etc/passwd
head /etc/passwd
head -n 5 a.txt /etc/passwd
head -n5 ../outside/secret.txt
tail -f a.txt
tail -F a.txt
tail -fn 5 a.txt
tail -5f a.txt
tail -n 5 -f a.txt
tail --follow a.txt
tail --follow=name a.txt
tail --fol a.txt
tail --retry a.txt
tail --pid=1 -f a.txt
cat /etc/passwd
cat a.txt /etc/passwd
cat -- /etc/passwd
cat ../outside/secret.txt
cat src/../../outside/secret.txt
cat ./../outside/secret.txt
cat //etc/passwd
cat /dev/zero
cat /dev/tcp/x
cat /proc/self/environ
cat /proc/1/cmdline
cat -- -n /etc/passwd
nl /etc/passwd
tac /etc/passwd
rev /etc/passwd
cut -d: -f1 /etc/passwd
paste a.txt /etc/passwd
join a.txt /etc/passwd
fold /etc/passwd
stat /etc/passwd
stat -c %n /etc/passwd
ls /
ls /etc
ls ..
ls -la ../outside
ls a.txt /etc
ls -L
ls --dereference
ls --deref
realpath --relative-to=/etc a.txt
realpath /etc/passwd
readlink -f /etc/passwd
test -e /etc/passwd
test -f ../outside/secret.txt
test a.txt -nt /etc/passwd
[ -f /etc/passwd ]
[ -r ../outside/secret.txt ]
env
printenv
printenv HOME
set
export
declare -p
ps aux
ps e
column -t /etc/passwd
expand /etc/passwd
sed -i s/a/b/ a.txt
sed -ni p a.txt
sed -n -i p a.txt
sed --in-place s/a/b/ a.txt
sed -i.bak s/a/b/ a.txt
sed -f evil.sh a.txt
sed -n 1p /etc/passwd
sed -n '1,5p' ../outside/secret.txt
iconv -o x a.txt
zip x a.txt
gzip a.txt
tar cf x a.txt
crontab -l
""",
    "links and hidden places": r"""
ls -lC dir-out
ls -l -x dir-out
ls -lm dir-out
ls -l --format=across dir-out
stat -f dir-out
cat link-out
cat ./link-out
cat src/../link-out
head link-out
wc -l link-out
cat dir-out/passwd
cat dir-out/../etc/passwd
ls dir-out/
ls dir-out
cat src/link
cat src/./link
grep x link-out
grep -r x dir-out
sort link-out
md5sum link-out
stat -L link-out
file -L link-out
cat link-to-link
cat dangling-out
cat .store/session
cat .store
ls .store
cat ./.store/../.store/session
cat link-to-store
cat .env
head -5 < .env
grep KEY .env
cat keys/id_rsa
cat keys/*
wc -l .env
sort .env
diff .env a.txt
git show HEAD:.env
git show HEAD:keys/id_rsa
git diff .env
sed -n 1p .env
md5sum .env
base64 < .env
jq . .env
head -5 < link-to-store
head -5 < src/link
git show HEAD:.store/session
cat fifo
cat < fifo
wc -l fifo
grep x fifo
test -f link-out
[ -e dir-out/passwd ]
diff a.txt link-out
cmp link-out a.txt
find dir-out/ -type f
tree dir-out
du -sh dir-out/
rg x dir-out
sed -n 1p link-out
jq . link-out
tail -n +1 link-out
cat a.txt link-out
cat -n link-out
""",
    "environment": r"""
X=1 ls
PATH=. ls
PATH=.:$PATH ls
LD_PRELOAD=./evil.so ls
BASH_ENV=evil.sh bash -c ls
GIT_PAGER=./evil.sh git log
GIT_EXTERNAL_DIFF=./evil.sh git diff
GIT_DIR=bare git status
GIT_CONFIG_COUNT=1 git status
PAGER='touch x' git log
RIPGREP_CONFIG_PATH=evil rg x
LESSOPEN='|touch x' less a.txt
IFS=x ls
PASSWORD="$(touch x)" ls
LC_ALL=C ls
TZ=UTC date
X=$(touch x) ls
X=1
X=1; ls
export X=1
PS4='$(touch x)' bash -xc ls
PROMPT_COMMAND='touch x'
a[$(touch x)]=1
x=(1 2)
x+=1 ls
HOME=. git status
TMPDIR=. sort a.txt
POSIXLY_CORRECT=1 ls
""",
    "git": r"""
git
git commit -m x
git add .
git add -A
git push
git pull
git fetch
git clone x
git checkout main
git checkout -b x
git switch x
git re.store a.txt
git reset --hard
git clean -fd
git rm a.txt
git mv a.txt b
git merge x
git rebase x
git cherry-pick x
git revert HEAD
git am x
git apply x
git init
git gc
git prune
git bisect start
git stash
git stash push
git stash pop
git stash drop
git stash -- list
git stash -p list
git stash -q list
git stash save list
git stash create
git tag v1
git tag -a v1 -m x
git tag -d v1
git tag -f v1
git tag -v v1
git branch new
git branch -d main
git branch -D main
git branch -m a b
git branch -f main HEAD
git branch -v new
git branch --sort=refname new
git branch -- new
git branch -u origin/main
git branch --set-upstream-to=origin/main
git branch --edit-description
git branch -l new
git config --add user.name x
git config --global user.name x
git config --global --get user.name
git config --global --list
git config --system -l
git config -f evil user.name
git config -f /etc/passwd -l
git config --file=/etc/passwd --list
git config --file /etc/passwd -l
git config -e
git config --edit
git config edit
git config user.name x
git config --local user.name x
git config --unset user.name
git config --unset-all user.name
git config --replace-all user.name x
git config --rename-section a b
git config --remove-section user
git config --blob HEAD:a.txt -l
git config core.fsmonitor './evil.sh'
git config set user.name x
git config --list
git config -l
git config http.extraheader
git config --get credential.helper
git -c core.pager=./evil.sh log
git -c core.fsmonitor=./evil.sh status
git -c alias.status='!touch x' status
git -calias.x=!touch x
git --config-env=core.pager=HOME log
git --exec-path=. status
git --exec-path=./bin log
git --git-dir=bare status
git --git-dir bare log
git --work-tree=/etc status
git --namespace=x log
git --paginate log
git -p log
git -C /etc status
git -C .. log
git -C dir-out status
git -C bare status
git -C bare log
git -C nested status
git -C nested log
git -C
git diff --output=x
git diff --output x
git diff --outp=x
git diff --out x
git log --output=x
git log -1 --output=x
git show --output=x HEAD
git log --format=%H --output x
git log -S --output=x
git log --grep --output=x
git diff -U --output=x
git diff --ext-diff
git log --ext-diff -p
git show --ext-diff
git diff --textconv
git log --textconv -p
git show --textconv HEAD:a.txt
git cat-file --textconv HEAD:a.txt
git cat-file --filters HEAD:a.txt
git cat-file --batch
git blame --contents /etc/passwd a.txt
git blame -S /etc/passwd a.txt
git diff --no-index /etc/passwd a.txt
git diff --no-index a.txt b.txt
git diff /etc/passwd a.txt
git diff a.txt ../outside/secret.txt
git diff -O/etc/passwd
git diff -Oevil
git log -p -Oevil
git diff --submodule=diff
git diff --submodule=log
git log --show-signature
git log --format='%G?'
git log --pretty='%GG'
git log --format=format:%GK
git show --pretty=%G? HEAD
git for-each-ref --format='%(signature)'
git grep -O x
git grep -Oless x
git grep --open-files-in-pager=./evil.sh x
git grep --open-files=./evil.sh x
git grep -f /etc/passwd
git grep --no-index x /etc
git grep --textconv x
git grep --recurse-submodules x
git ls-files -X /etc/passwd
git ls-files --exclude-from=/etc/passwd
git ls-files --recurse-submodules
git status --help
git help log
git log --help
git remote add x y
git remote set-url origin x
git remote remove origin
git remote update
git remote show origin
git remote prune origin
git remote -v update
git ls-remote
git submodule status
git submodule update
git submodule foreach 'touch x'
git worktree add x
git worktree -v add x
git worktree prune
git reflog expire --all
git reflog delete HEAD@{0}
git reflog -- expire
git notes add -m x
git archive -o x HEAD
git bundle create x HEAD
git format-patch HEAD~1
git difftool
git mergetool
git daemon
git instaweb
git gui
git send-email x
git filter-branch
git update-ref HEAD x
git symbolic-ref HEAD refs/heads/x
git update-index --refresh
git read-tree HEAD
git write-tree
git hash-object -w a.txt
git pack-objects x
git fsck
git maintenance run
git rev-parse --parseopt
git rev-list --stdin
git shortlog --output=x
git unknown
git status ; git commit -m x
git log | git commit
git describe --dirty=x --exec=y
git whatchanged --output=x
git diff-tree --stdin
git check-ignore --stdin
git var -l
git credential fill
git bugreport
git diagnose
git fast-export --export-marks=x HEAD
git show-index < a.txt
git stripspace
git interpret-trailers --in-place a.txt
git rerere
git replace a b
git sparse-checkout list
git backfill
git upload-pack .
git fetch-pack .
git http-backend
git checkout-index -a
git merge-file a b c
git -
""",
}

HOSTILE_TEXTS: dict[str, list[str]] = {
    "several lines": [
        "ls\ntouch x", "ls\n\n\ntouch x", "\ntouch x", "ls &&\ntouch x", "ls |\nsh", "ls\n| sh", "ls\n&& ls", "# look\nls", "ls # look\ntouch x",
        "cat <<EOF\n$(touch x)\nEOF", "cat <<'EOF' > x\na\nEOF", "cat <<EOF | sh\ntouch x\nEOF", "cat << 'E'\nE\ntouch x", "ls <<E\n`touch x`\nE\n",
        "sed '1{w x\n}' a.txt", "sed -n '1p\nw x' a.txt", "echo 'a\nb' `touch x`", "echo 'a\n'; touch x", "if true\nthen touch x\nfi",
        "f()\n{ touch x\n}\nf", "ls\n(touch x)", "echo \"a\n$(touch x)\"", "ls;\n;ls", "ls\n}\n",
    ],
    "encodings": [
        "", " ", "\n", "\t",
        "ls\u00a0-la",
        "cat\u00a0/etc/passwd",
        "ls\u2003-la",
        "ls\u3000-la",
        "ls\u2028touch x",
        "ls\u2029touch x",
        "ls\u0085touch x",
        "ls\u200b",
        "l\u200bs",
        "\u200els",
        "echo 'a\u202eb'",
        "echo '\u2066x\u2069'",
        "echo \ufefftouch",
        "\ufeffls",
        "ls\rtouch x",
        "ls\r\ntouch x",
        "echo a\rb",
        "ls\vtouch x",
        "ls\ftouch x",
        "ls\x00touch x",
        "echo a\x00",
        "echo '\x1b[2Jx'",
        "echo \x07",
        "echo \x7f",
        "echo 'a\x01b'",
        "echo \x01",
        "ls \\\ntouch x",
        "ls \\\n-la",
        "ec\\\nho a",
        "echo \"a\\\nb\"",
        "echo \ud800",
        "echo '\udcff'",
        "ｌｓ",
        "сat a.txt",
        "саt a.txt",
        "cat ／etc／passwd",
        "echo “a b”",
        "ls\uff1btouch x",
        "echo 'x'\u037e touch x",
        "ls −la",
        "ls\u00ad",
        "echo a\u0000b",
        "cat /etc/passwd\u200b",
        "echo à",
        "echo \u2212",
        "echo " + "x" * 9_000,
        "ls " * 3_000,
        "(" * 4_000,
        "echo " + "$(" * 2_000 + ")" * 2_000,
        "echo " + '"$(' * 1_500,
        "[ " * 2_000,
        "{ " * 2_000,
        "ls; " * 2_000,
        "true && " * 500 + "true",
        "a" * 7_999,
        "echo '" + "a" * 7_900,
        "<" * 3_000,
        "cat " + "<<E " * 1_500,
        "`" * 4_000,
        "!" * 4_000,
        "$" * 4_000,
        "'" * 3_999,
        '"' * 3_999,
        "\\" * 3_999,
        "ls " + "*" * 3_000,
        "cat " + "*/" * 2_000,
        "ls " + "*a" * 2_000,
    ],
}  # fmt: skip

HARMLESS: dict[str, str] = {
    "listing": r"""
ls
ls -la
ls -l
ls -al src
ls -lah
ls -1
ls -R src
ls -lt
ls -ltr
ls -lS src
ls -d src
ls -a .
ls ./src
ls src/
ls src docs
ls --all
ls -la --color=never
ls --color=auto -l
ls -lh --group-directories-first
ls --sort=size
ls missing
ls "src"
ls 'src/main.py'
ls src/main.py README.md
ls *.md
ls src/*.py
ls -la *.txt
ls -la src/ 2>/dev/null
ls src 2>&1
ls nowhere 2>/dev/null || echo missing
ls -la && pwd
ls; pwd
ls -la | head -20
ls | wc -l
ls -1 | sort
ls -la src | grep py
ls | cat
ls > /dev/null
ls &> /dev/null
pwd
pwd -P
tree
tree -L 2
tree -a -L 1 src
tree -I node_modules
tree -I 'node_modules|dist' -L 3
tree -d
du -sh .
du -sh src
du -sh *
du -h --max-depth=1
du -h -d 1 .
du -a src | sort -n | tail -5
df -h
df -h .
stat a.txt
stat -c '%s %n' a.txt
stat -c %y README.md
file a.txt
file src/main.py README.md
file -b a.txt
file --mime-type a.txt
realpath src
realpath .
readlink -f src/main.py
basename src/main.py
basename src/main.py .py
basename /usr/lib/x
dirname src/main.py
""",
    "reading": r"""
cat a.txt
cat a.txt b.txt
cat README.md
cat -n src/main.py
cat -A a.txt
cat src/*.py
cat ./a.txt
cat src/../a.txt
cat "a file.txt"
cat 'a file.txt'
cat a\ file.txt
cat package.json | head -30
cat a.txt | wc -l
cat a.txt; cat b.txt
cat a.txt && echo done
cat missing.txt
cat missing.txt 2>/dev/null
cat < a.txt
cat link-in
cat .gitignore
cat /dev/null
cat -- a.txt
head a.txt
head -5 a.txt
head -n 20 a.txt
head -n20 a.txt
head -20 src/main.py
head -c 100 a.txt
head --lines=5 a.txt
head -5 < a.txt
head -n 5 a.txt b.txt
head -n -1 a.txt
tail a.txt
tail -50 a.txt
tail -n 20 a.txt
tail -n +5 a.txt
tail -c 100 a.txt
tail -20 a.txt | head -5
wc -l a.txt
wc -l src/*.py
wc -lwc a.txt
wc a.txt b.txt
wc -c < a.txt
nl a.txt
nl -ba src/main.py
tac a.txt
rev a.txt
sed -n '1,20p' a.txt
sed -n 1,20p a.txt
sed -n '5p' a.txt
sed -n '10,$p' src/main.py
sed -n '1p;3p' a.txt
sed -n '/import/p' src/main.py
sed -n '/def/,/return/p' src/main.py
sed 's/a/b/' a.txt
sed 's/a/b/g' a.txt
sed -e 's/a/b/g' a.txt
sed 's|a|b|g' a.txt
sed '1d' a.txt
sed -n "2,4p" a.txt | cat -n
cut -d: -f1 a.txt
cut -d, -f1,3 data.csv
cut -d ' ' -f 2 a.txt
cut -c1-80 a.txt
cut -f2 data.csv
tr a-z A-Z < a.txt
cat a.txt | tr 'a-z' 'A-Z'
cat a.txt | tr -d '\n'
cat a.txt | tr -s ' '
sort a.txt
sort -n a.txt
sort -rn a.txt
sort -u a.txt
sort -k2 a.txt
sort -k 2,2n -t, data.csv
sort -t, -k1 data.csv
sort a.txt | uniq
sort a.txt | uniq -c
sort a.txt | uniq -c | sort -rn
sort a.txt | uniq -c | sort -rn | head -10
uniq a.txt
uniq -c a.txt
comm -12 a.txt b.txt
diff a.txt b.txt
diff -u a.txt b.txt
diff -q a.txt b.txt
diff -y --suppress-common-lines a.txt b.txt
diff -w a.txt b.txt | head
diff -r --no-dereference src docs
cmp a.txt b.txt
paste a.txt b.txt
column -t a.txt
column -s, -t data.csv
fold -w 80 a.txt
md5sum a.txt
sha256sum a.txt b.txt
sha1sum a.txt
cksum a.txt
od -c a.txt
od -An -tx1 a.txt
hexdump -C a.txt
hexdump -C a.txt | head -5
xxd a.txt
xxd -l 64 a.txt
strings a.txt
base64 a.txt
jq . package.json
jq '.name' package.json
jq -r .version package.json
jq '.scripts | keys' package.json
cat package.json | jq '.dependencies'
shuf -n 3 a.txt
awk '{print $1}' a.txt
awk '{print $1, $2}' a.txt
awk '{ print $NF }' a.txt
awk -F: '{print $1}' a.txt
awk -F, '{print $2}' data.csv
awk -F ',' '{print $1 "-" $2}' data.csv
awk 'NR==1' a.txt
awk 'NR>=2 && NR<=4' a.txt
awk 'NR==2 {print $1}' a.txt
awk '/a/' a.txt
awk '/a/ {print $2}' a.txt
awk '$1 == "a"' a.txt
awk '$2 ~ /t/ {print NR, $0}' a.txt
awk 'length > 80' src/main.py
awk '{s+=$1} END {print s}' a.txt
ls -la | awk '{print $5, $9}'
git log --oneline | awk '{print $1}' | head -3
""",
    "searching": r"""
grep x a.txt
grep -n x a.txt
grep -rn x src
grep -rn "x" src
grep -rn 'a b' src
grep -rn x .
grep -rn "def main" src/
grep -rn --include='*.py' main .
grep -rn --include="*.py" "import" src
grep -rn main . --include='*.py'
grep -rln main .
grep -ri main src
grep -rE 'a|b' src
grep -E "^(a|b)" a.txt
grep -c x a.txt
grep -v x a.txt
grep -w main src/main.py
grep -A 3 -B 2 main src/main.py
grep -A3 main src/main.py
grep -C 2 main src/main.py
grep -i readme README.md
grep -l main src/*.py
grep -o 'a.' a.txt
grep -q x a.txt && echo yes
grep -q x a.txt || echo no
grep -F 'a.b' a.txt
grep -P '\d+' a.txt
grep "foo$" a.txt
grep '^$' a.txt
grep -e a -e b a.txt
grep -rn x src | head -5
grep -rn x src | grep -v test | head
grep -rn x src | wc -l
grep -rn "TODO\|FIXME" src
grep -rn x --exclude-dir=node_modules .
grep -rn x . 2>/dev/null | head
grep -n "class \|def " src/main.py
grep -n "/api/v1" src/main.py
grep -rn 'price: \$5' src
grep -c '' a.txt
grep -rn --color=never x src
egrep 'a|b' a.txt
fgrep x a.txt
rg x
rg x src
rg -n x src
rg -n "def main" src
rg -l x
rg -i x src
rg -t py main
rg -tpy main
rg --type py main src
rg -g '*.py' main
rg -g '!tests' main src
rg --files
rg --files src
rg --files -g '*.py'
rg --files | head -20
rg -c x src
rg -w main src
rg -A 3 -B 3 main src
rg -C2 main
rg -F 'a.b' src
rg -e a -e b src
rg --hidden x src
rg --no-ignore x src
rg 'a|b' src | head -20
rg -o 'import \w+' src
rg --json main src
rg "foo$" src
find .
find . -name '*.py'
find . -name "*.py"
find . -name \*.py
find src -name '*.py' -type f
find . -type f
find . -type f | head -20
find . -type d
find . -maxdepth 2 -type f
find . -maxdepth 1
find . -iname '*readme*'
find . -name '*.py' -not -path './node_modules/*'
find . -name '*.py' ! -path './node_modules/*'
find . -path ./node_modules -prune -o -name '*.py' -print
find . -name '*.py' -o -name '*.md'
find . \( -name '*.py' -o -name '*.md' \) -type f
find . -size +1k
find . -mtime -1
find . -newer a.txt
find . -empty
find . -type f -name '*.py' | wc -l
find . -type f -name '*.py' | sort
find . -type f -printf '%s %p\n' | sort -rn | head
find src docs -type f
find . -name '*.txt' -print0
find . -not -path '*/.git/*' -type f
find . -type f -name 'test_*' 2>/dev/null
which python
which git ls
type ls
type -a ls
command -v git
command -v git >/dev/null && echo yes
command -v rg >/dev/null 2>&1 && echo yes || echo no
""",
    "talking": r"""
echo hello
echo "a b"
echo 'a; rm -rf /'
echo "a > b"
echo "it's"
echo 'say "hi"'
echo "a \"quoted\" word"
echo -n x
echo -e 'a\nb'
echo
echo "done!"
echo a=b
echo $?
echo "exit: $?"
ls; echo $?
ls nowhere; echo "status $?"
echo --- && ls
echo "=== files ===" && ls && echo "=== end ==="
echo /etc/passwd
echo "$"
echo 'grüße'
echo "日本語"
echo "é"
printf 'a\n'
printf '%s\n' a b c
printf "%d items\n" 3
printf '%-10s|%5.2f\n' a 1
true
false
:
true || false
test -f a.txt && echo yes
test -d src && echo yes || echo no
test -e missing.txt
test ! -f a.txt
test -z ""
test a = a
test 1 -lt 2
[ -f a.txt ]
[ -f a.txt ] && echo yes
[ -d src ] && ls src
[ ! -e missing ] && echo gone
[ a = b ] || echo different
[ 1 -eq 1 ]
test -f .env && echo yes
[ -f .env ]
ls -la .env
ls .env
stat .env
date
date +%Y-%m-%d
date '+%H:%M:%S'
date -u
date -u +%FT%TZ
date -d yesterday +%F
whoami
id
id -u
uname -a
uname -s
nproc
arch
uptime
hostname
seq 1 5
seq 10
expr 1 + 2
python --version
python3 --version
python3 -V
git --version
bash --version
ls --help
grep --version
rg --version
cd src
cd src && ls
cd src && ls -la && cat main.py
cd src && git log --oneline -3
cd ./src && pwd
cd src && cat ../a.txt
cd src; ls
cd docs && ls | head
""",
    "git": r"""
git config --get-regexp '^remote\..*'
git config --get-regexp ^user.name
git config --local --get-regexp branch
git status
git status -s
git status --short
git status -sb
git status --porcelain
git status --porcelain=v2 --branch
git status --short --branch
git status .
git status 2>&1 | head -20
git log
git log --oneline
git log --oneline -5
git log --oneline -n 5
git log -5
git log -n 5
git log -n5 --oneline
git log -1
git log -1 --format=%H
git log --oneline --graph --all
git log --oneline --graph --decorate --all -20
git log --stat -2
git log -p -1
git log -p -- a.txt
git log --follow a.txt
git log --oneline -- src
git log --oneline -10 -- src/main.py
git log --format='%h %an %s' -5
git log --pretty=format:'%h - %s' -3
git log --pretty=oneline
git log --author=x
git log --author="A B" --since="2 weeks ago"
git log --since=yesterday
git log --grep=first
git log -S main
git log -Smain --oneline
git log --name-only -1
git log --name-status -2
git log HEAD~1..HEAD
git log HEAD^..HEAD --oneline
git log main
git log --all --oneline | head -5
git log --date=short --pretty=format:'%ad %s'
git log -L1,2:a.txt
git --no-pager log --oneline -3
git --no-pager diff
git diff
git diff HEAD
git diff HEAD~1
git diff HEAD~1 HEAD
git diff HEAD~1..HEAD
git diff HEAD^ HEAD -- a.txt
git diff --stat
git diff --stat HEAD~1
git diff --cached
git diff --staged --stat
git diff --name-only
git diff --name-only HEAD~1
git diff --name-status HEAD~1 HEAD
git diff a.txt
git diff -- a.txt
git diff -w
git diff -U0
git diff -U10 HEAD~1
git diff --word-diff
git diff --no-color
git diff --check
git diff --numstat | head
git diff --shortstat
git show
git show HEAD
git show --stat HEAD
git show --stat
git show HEAD --stat
git show HEAD~1
git show HEAD:a.txt
git show HEAD:src/main.py | head -20
git show --name-only HEAD
git show --format=%s -s HEAD
git show HEAD@{0}
git log HEAD@{1}..HEAD --oneline
grep -rn main --include=*.py .
git branch
git branch -a
git branch -v
git branch -vv
git branch -r
git branch --show-current
git branch --list
git branch --list 'feature/*'
git branch --contains HEAD
git branch --merged
git branch --merged main
git tag
git tag -l
git tag -l 'v*'
git tag --list --sort=-creatordate
git remote
git remote -v
git remote get-url origin
git stash list
git reflog
git reflog -5
git reflog show HEAD
git rev-parse HEAD
git rev-parse --short HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git rev-parse --is-inside-work-tree
git ls-files
git ls-files src
git ls-files --others --exclude-standard
git ls-files | wc -l
git ls-files -m
git ls-tree HEAD
git ls-tree -r --name-only HEAD
git cat-file -p HEAD
git cat-file -t HEAD
git blame a.txt
git blame -L 1,1 a.txt
git shortlog -sn HEAD
git describe --tags --always
git rev-list --count HEAD
git merge-base HEAD HEAD~1
git show-ref
git for-each-ref
git config user.name
git config --get user.email
git config --get remote.origin.url
git config --local --list
git worktree list
git grep main
git grep -n main
git grep -n "def main" -- src
git grep -l main src
git count-objects -v
git -C src log --oneline -3
git -C . status
git status && git diff --stat
git status; git log --oneline -3
""",
}


def lines(families: dict[str, str]) -> list[str]:
    """Every line of the families."""
    return [line for text in families.values() for line in text.strip("\n").split("\n")]


def hostile() -> list[str]:
    """Every hostile line."""
    return list(
        dict.fromkeys([*lines(HOSTILE), *(text for texts in HOSTILE_TEXTS.values() for text in texts)])
    )


def harmless() -> list[str]:
    """Every harmless line."""
    return list(dict.fromkeys(lines(HARMLESS)))
